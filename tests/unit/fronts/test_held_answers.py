"""Calls that are held: what happens to one of them does not happen to the others."""

import logging
from typing import Any

import pytest

from tandemmq.store.broker.group_transfer import PutStatus
from tandemmq.store.fronts.held_answer import HeldAnswers


class _Way:
    def less_safe(self, answer: bytes, status: PutStatus) -> tuple[bytes, str]:
        if answer == b"odd":
            raise ValueError("it cannot be read")
        return answer + status.name.encode(), "SUCCESS"

    def ended(self, outcome: str, seconds: float) -> None:
        pass


class _Call:
    def __init__(self) -> None:
        self.later: list[bytes] = []

    def answer_later(self, answer: bytes) -> None:
        if answer == b"broken":
            raise RuntimeError("the connection is in pieces")
        self.later.append(answer)


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
    assert "was not answered" in caplog.text
