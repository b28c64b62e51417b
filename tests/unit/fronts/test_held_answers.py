"""Calls that are held: what happens to one of them does not happen to the others."""

import logging
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import grpc
import pytest

from tandemmq.store.broker.group_transfer import PutStatus
from tandemmq.store.delivery.errors import NotDelivering, NotSafe
from tandemmq.store.fronts.held_acknowledgements import HeldAcknowledgements
from tandemmq.store.fronts.held_answer import HeldAnswers
from tandemmq.store.fronts.held_receives import HeldReceives


class _Way:
    core = None

    def __init__(self) -> None:
        self.outcomes: list[str] = []

    def less_safe(self, answer: bytes, status: PutStatus) -> tuple[bytes, str]:
        if answer == b"odd":
            raise ValueError("it cannot be read")
        return answer + status.name.encode(), "SUCCESS"

    def ended(self, outcome: str, seconds: float) -> None:
        self.outcomes.append(outcome)


class _Call:
    gone = False

    def __init__(self) -> None:
        self.later: list[bytes] = []
        self.ended: tuple[grpc.StatusCode, str] | None = None

    def answer_later(self, answer: bytes) -> None:
        if answer == b"broken":
            raise RuntimeError("the connection is in pieces")
        self.later.append(answer)

    def end_with(self, code: grpc.StatusCode, details: str, trailing: object) -> None:
        self.ended = code, details

    def hand_over(self, request: bytes) -> None:
        self.answer_later(request)


class _Journal:
    """One turn of it."""

    end_offset, failure = 1, None

    def when_written(self, told: Callable[[Any], None]) -> None:
        self.told = told

    def at_the_end_of_the_turn(self, work: Callable[[], None]) -> None:
        raise AssertionError("nothing is left for then")


@pytest.mark.parametrize(("bad", "status"), [(b"broken", PutStatus.PUT_OK), (b"odd", PutStatus.FLUSH_DISK_TIMEOUT)])
def test_one_that_fails_does_not_take_the_others_along(
    bad: bytes, status: PutStatus, caplog: pytest.LogCaptureFixture
) -> None:
    way: Any = _Way()
    held, calls = HeldAnswers(way), [_Call() for _ in range(3)]
    held.held += [(call, answer, 0.0) for call, answer in zip(calls, (b"one", bad, b"two"), strict=True)]  # type: ignore[misc]
    with caplog.at_level(logging.ERROR):
        held(status)
    assert [len(call.later) for call in calls] == [1, 0, 1]
    if bad == b"odd":  # whoever sent it hears that it is stored, and not how safe it is
        assert calls[1].ended is not None
        assert calls[1].ended[0] is grpc.StatusCode.INTERNAL
        assert "is stored" in calls[1].ended[1]
        assert way.outcomes == ["SUCCESS", "INTERNAL", "SUCCESS"]
    else:
        assert "was not answered" in caplog.text


@pytest.mark.parametrize("lost", [None, NotDelivering("This store is no master.")])
@pytest.mark.parametrize("acknowledge", [True, False])
def test_one_of_a_turn_of_the_journal_that_fails_does_not_take_the_others_along(
    acknowledge: bool, lost: NotDelivering | None, caplog: pytest.LogCaptureFixture
) -> None:
    times: Any = SimpleNamespace(called=lambda *_, **__: None)
    safe: Any = SimpleNamespace(when_safe=lambda _, told, *, wait: told(PutStatus.PUT_OK))
    batch: Any = None
    journal, calls = _Journal(), [_Call() for _ in range(3)]
    receives = HeldReceives("R", journal, times)
    acknowledges = HeldAcknowledgements("A", journal, safe, times, lambda *_: "REFUSED")
    for one, said in zip(calls, (b"one", b"broken", b"two"), strict=True):
        call: Any = one
        if acknowledge:
            acknowledges.hold(call, said, said, 0.0)
        else:
            receives.hold(call, said, said, batch, 0.0, long_polling=False)
    with caplog.at_level(logging.ERROR):
        journal.told(lost)
    assert [call.later for call in calls] == [[b"one"], [], [b"two"]]
    assert "was not answered" in caplog.text


def test_what_replicas_do_not_have_in_time_is_refused_and_does_not_wait_once_more(
    caplog: pytest.LogCaptureFixture,
) -> None:
    told: list[str] = []
    times: Any = SimpleNamespace(called=lambda _, outcome, __: told.append(outcome))
    slow: Any = SimpleNamespace(when_safe=lambda _, told, *, wait: told(PutStatus.FLUSH_SLAVE_TIMEOUT))
    journal, calls = _Journal(), [_Call() for _ in range(3)]

    def refuse(call: Any, error: NotSafe) -> str:
        call.answer_later(b"broken" if call is calls[1] else error.message.encode())
        return "REFUSED"

    acknowledges = HeldAcknowledgements("A", journal, slow, times, refuse)
    for one in calls:
        call: Any = one
        acknowledges.hold(call, b"request", b"answer", 0.0)
    with caplog.at_level(logging.ERROR):
        journal.told(None)
    refused = b"What was done is noted, but it is not known to be safe: FLUSH_SLAVE_TIMEOUT."
    assert [call.later for call in calls] == [[refused], [], [refused]]
    assert told == ["REFUSED"] * 2
    assert "was not answered" in caplog.text
