"""Calls that the compiled core holds until the end of a turn: which it leaves to Python."""

from dataclasses import dataclass
from typing import Any

import pytest

from tandemmq.store.compiled_core import core_problem
from tandemmq.store.delivery.receiving.answer import GivenBatch
from tandemmq.store.fronts.calls_of_turn import KeptCall
from tandemmq.store.metrics import StoreMetrics

pytestmark = pytest.mark.skipif(core_problem() != "", reason=core_problem() or "it is there")

LARGEST = 10


@dataclass
class Caller:
    """A call, as far as it is asked here."""

    gone: bool = False
    has_room: bool = True


def core() -> Any:
    from tandemmq.store.fronts.compiled.held_calls import CompiledHeldCalls

    return CompiledHeldCalls("Receive", StoreMetrics("cluster", "node"))


def kept(*calls: Caller) -> list[Any]:
    return [KeptCall(call, b"request", 1.5, None) for call in calls]  # type: ignore[arg-type]


def test_calls_are_held_with_what_they_get() -> None:
    calls, batches = kept(Caller(), Caller(), Caller()), [GivenBatch(), GivenBatch()]
    held: list[Any] = []
    assert core().hold_receives(held, calls, batches, lambda _: b"answer", LARGEST, True) == 2
    assert held == [
        (one.call, b"request", b"answer", batch, 1.5, True) for one, batch in zip(calls, batches, strict=False)
    ]


@pytest.mark.parametrize("answer", [b"x" * (LARGEST + 1), None, ValueError("it cannot be written")])
def test_what_python_has_to_look_at_ends_it(answer: bytes | Exception | None) -> None:
    batches = [GivenBatch() for _ in range(3)]
    held: list[Any] = []

    def answer_of(batch: GivenBatch) -> bytes | None:
        if batch is not batches[1]:
            return b"x" * LARGEST
        if isinstance(answer, Exception):
            raise answer
        return answer

    calls = kept(Caller(), Caller(), Caller())
    assert core().hold_receives(held, calls, batches, answer_of, LARGEST, False) == 1
    assert [one[3] for one in held] == batches[:1]


def test_who_has_gone_or_does_not_read_is_told_apart() -> None:
    assert core().all_wait(kept(Caller(), Caller()))
    assert not core().all_wait(kept(Caller(), Caller(gone=True)))
    assert not core().all_wait(kept(Caller(has_room=False), Caller()))
