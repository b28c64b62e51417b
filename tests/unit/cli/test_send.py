"""`tandem send`: a time to come, and a file that is not sent to its end: how far it got, and how to go on."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tandemmq.cli.messaging.send import _check_status, _send_many
from tandemmq.cli.messaging.special import remark_on_times, special_properties
from tandemmq.cli.talk.failures import CommandFailed
from tandemmq.cli.talk.moments import BadMoment, parse_moment_ahead
from tandemmq.cli.talk.output import Output
from tandemmq.client import Outgoing
from tandemmq.store.v1 import store_pb2 as pb


class Gone(Exception):
    """The store died."""


class DyingStore:
    """A store that acknowledges requests, refuses one, and dies with two of them unanswered."""

    def __init__(self, *, answers: int, refuses: int = -1) -> None:
        self.stub = self
        self._answers = answers
        self._refuses = refuses

    def SendStream(self, requests: Iterator[pb.SendBatchRequest]) -> Iterator[pb.SendStreamResponse]:
        read = [request for request, _ in zip(requests, range(self._answers + 2), strict=False)]
        for number, request in enumerate(read[: self._answers]):
            if number == self._refuses:
                yield pb.SendStreamResponse(refusal=pb.Refusal(message="too large"))
            else:
                receipts = [pb.SendReceipt(status=pb.PUT_OK, queue_id=1) for _ in request.messages]
                yield pb.SendStreamResponse(receipts=pb.SendBatchResponse(receipts=receipts))
        raise Gone


def told(store: DyingStore, file: Path | None, capsys: pytest.CaptureFixture[str]) -> list[str]:
    messages = (Outgoing("orders", b"x") for _ in range(100))
    with pytest.raises(Gone):
        _send_many(store, Output(as_json=False), messages, 5, file)  # type: ignore[arg-type]
    said: Any = capsys.readouterr()
    assert said.out == ""
    lines: list[str] = said.err.splitlines()
    return lines


def test_it_says_how_many_were_acknowledged_and_the_line_to_go_on_with(capsys: pytest.CaptureFixture[str]) -> None:
    assert told(DyingStore(answers=3), Path("two words"), capsys) == [
        "15 messages were acknowledged; those after them may be stored or not.",
        "Go on at line 16 of two words: tail -n +16 'two words' | tandem send ... --file -",
    ]


def test_what_was_refused_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    assert told(DyingStore(answers=3, refuses=1), Path("-"), capsys) == [
        "10 messages were acknowledged, 5 were not safe or refused; those after them may be stored or not.",
        "Go on at line 16.",
    ]


def test_without_a_file_there_is_no_line(capsys: pytest.CaptureFixture[str]) -> None:
    (said,) = told(DyingStore(answers=1), None, capsys)
    assert said.startswith("5 messages were acknowledged")


def test_that_nothing_was_acknowledged(capsys: pytest.CaptureFixture[str]) -> None:
    assert told(DyingStore(answers=0), Path("lines"), capsys) == ["No message was acknowledged."]


@pytest.mark.parametrize("text", ["2026-02-30T12:00", "tomorrow", "friends", ""])
def test_what_is_no_time_to_come_is_refused_with_the_forms_that_are(text: str) -> None:
    with pytest.raises(BadMoment, match="is no time; write it as") as refused:
        parse_moment_ahead(text)
    assert "ago" not in refused.value.message, "which is refused"


def test_a_duration_is_no_time_to_come() -> None:
    with pytest.raises(BadMoment, match="is a duration: say --delay 10m"):
        special_properties("", "10m", "")


def test_a_time_that_is_past_is_told_in_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    remark_on_times(Output(as_json=False), special_properties("", "2020-01-31T12:00", ""))
    assert capsys.readouterr().err == "2020-01-31 12:00:00.000 is past: consumers get it at once.\n"
    for at in ("now", "2999-01-31"):
        remark_on_times(Output(as_json=False), special_properties("", at, ""))
    remark_on_times(Output(as_json=True), special_properties("", "2020-01-31T12:00", ""))
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(
    ("status", "count", "said"),
    [
        ("SLAVE_NOT_AVAILABLE", 1, "1 message ended with SLAVE_NOT_AVAILABLE: stored, but on this node only"),
        ("FLUSH_SLAVE_TIMEOUT", 2, "2 messages ended with FLUSH_SLAVE_TIMEOUT: stored, but no slave said in time"),
        ("FLUSH_DISK_TIMEOUT", 1, "1 message ended with FLUSH_DISK_TIMEOUT: stored, but the disk did not say in time"),
    ],
)
def test_a_status_that_is_not_put_ok_says_what_is_not_known(status: str, count: int, said: str) -> None:
    with pytest.raises(CommandFailed) as raised:
        _check_status([{"status": status}] * count)
    assert str(raised.value).startswith(said)
