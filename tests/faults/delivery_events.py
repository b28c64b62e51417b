"""The events that producers and consumers of a delivery campaign have written, as a history."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.faults.delivery_history import Fault, Group, History, Message, Receipt, Sent, Settling


def events_of(directory: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """All events, file by file; a last line that was not written whole is left out."""
    for path in sorted(directory.glob("*.events")):
        for line in path.read_bytes().splitlines(keepends=True):
            if line.endswith(b"\n"):
                kind, what = json.loads(line)
                yield kind, what


def history_of(directory: Path, groups: list[Group], faults: list[Fault]) -> History:
    """What was seen. What was told while the power went does not count as told."""
    history = History(groups, faults=list(faults))
    cuts = [fault for fault in faults if fault.what == "power cut"]
    begun: dict[str, dict[str, Any]] = {}
    settled: dict[str, dict[str, Any]] = {}

    def counted(at: float) -> float:
        return 0 if any(cut.begun <= at <= cut.end for cut in cuts) else at

    for kind, what in events_of(directory):
        if kind == "send":
            sent = Sent(what["value"], what["begun"], 0, what["tag"], what["key"], what["due"])
            history.sent[sent.value] = sent if what["copied"] else sent._replace(queue=("", -1))
        elif kind == "sent":
            _sent(history, what, counted(what["at"]))
        elif kind == "recall":
            history.sent[what["value"]] = history.sent[what["value"]]._replace(recalling=True)
        elif kind == "never":
            never = bool(counted(what["at"]))
            history.sent[what["value"]] = history.sent[what["value"]]._replace(never=never, recalling=True)
        elif kind == "got":
            history.receipts += _receipts(what)
        elif kind == "settle":
            begun[what["id"]] = what
        elif kind == "settled":
            settled[what["id"]] = what
    for number, what in begun.items():
        history.settlings += _settlings(what, settled.get(number), counted)
    return history


def _sent(history: History, what: dict[str, Any], at: float) -> None:
    sent = history.sent[what["value"]]
    if sent.copied:
        history.sent[sent.value] = sent._replace(told=at)
    else:
        history.sent[sent.value] = sent._replace(told=at, queue=("work", what["queue"]), offset=what["offset"])


def _receipts(what: dict[str, Any]) -> Iterator[Receipt]:
    for index, (value, number, topic, queue, offset) in enumerate(what["seen"]):
        yield Receipt(
            what["group"], value, number, what["begun"], what["at"], (topic, queue), offset,
            what["invisible_ms"], what["answer"], index,
        )  # fmt: skip


def _settlings(what: dict[str, Any], answer: dict[str, Any] | None, counted: Any) -> Iterator[Settling]:
    at = 0 if answer is None else counted(answer["at"])
    for index, (value, topic, queue, offset) in enumerate(what["what"]):
        told = at if answer is not None and answer["told"][index] else 0
        gone = answer is not None and bool(answer["gone"][index])
        message = Message(what["group"], value, (topic, queue), offset)
        yield Settling(message, what["how"], what["begun"], told, gone, what["after_ms"])
