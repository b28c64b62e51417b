"""Message traces, as RocketMQ's classic clients write them into the bodies of messages of RMQ_SYS_TRACE_TOPIC.

A body is text: entries that each end with 02, of fields with 01 between them. The first field says which it is::

    Pub             time, region, group, topic, message id, tags, keys, store host, body length, cost, message type,
                    [offset message id,] success [, client host]
    SubBefore       time, region, group, request id, message id, retry times, keys
    SubAfter        request id, message id, cost, success, keys [, outcome [, time [, group]]]
    EndTransaction  time, region, group, topic, message id, tags, keys, store host, message type, transaction id, state,
                    from check

Times are ms since 1970, costs ms. What is in brackets is not there in every release: clients of 4.9.7 and 5.3.2 write
all of it but the client host. Java writes a missing text as ``null``. A SubBefore of several messages is one entry for
each, and its SubAfter has its request id.
"""

from collections.abc import Callable
from enum import Enum
from typing import NamedTuple

from tandemmq.common.topic_names import TRACES

TOPIC = TRACES
ENTRY_END, FIELD_END = "\2", "\1"

MESSAGE_TYPES = ("normal", "half", "commit", "delayed", "ordered")
OUTCOMES = ("success", "time-out", "exception", "returned null", "failed")


class TraceKind(Enum):
    """What an entry tells of."""

    SENT = "Pub"
    GIVEN = "SubBefore"
    CONSUMED = "SubAfter"
    TRANSACTION = "EndTransaction"


class TraceEntry(NamedTuple):
    """One entry. What its kind does not have, or its client did not know, is empty, 0 or None."""

    kind: TraceKind
    message_id: str
    """UNIQ_KEY."""
    keys: str = ""
    """Separated by blanks."""
    time_ms: int = 0
    """When the call began; of CONSUMED, when it ended."""
    group: str = ""
    topic: str = ""
    tags: str = ""
    store_host: str = ""
    body_length: int = 0
    cost_ms: int = 0
    message_type: str = ""
    offset_message_id: str = ""
    success: bool | None = None
    outcome: str = ""
    """What a consumer made of it, one of OUTCOMES."""
    retry_times: int = 0
    request_id: str = ""
    """Joins CONSUMED to its GIVEN."""
    transaction_id: str = ""
    transaction_state: str = ""
    """COMMIT_MESSAGE, ROLLBACK_MESSAGE, UNKNOW."""
    from_check: bool = False
    """The transaction was ended as the broker asked for it."""
    client_host: str = ""


class Traces(NamedTuple):
    """What a body tells."""

    entries: list[TraceEntry]
    unreadable: int
    """Entries that make no sense: cut, or of a release that is not known."""


def decode_traces(body: bytes) -> Traces:
    """The entries of a body. Nothing is raised: bytes of strangers may be anything."""
    entries: list[TraceEntry] = []
    unreadable = 0
    for text in body.decode("utf-8", "replace").split(ENTRY_END):
        if not text:
            continue
        fields = text.split(FIELD_END)
        try:
            entries.append(_READERS[fields[0]](fields))
        except (ValueError, LookupError):
            unreadable += 1
    return Traces(entries, unreadable)


def _by_producer(kind: TraceKind, fields: list[str]) -> TraceEntry:
    """What both kinds have that producers tell."""
    return TraceEntry(
        kind,
        time_ms=int(fields[1]),
        group=_text(fields[3]),
        topic=_text(fields[4]),
        message_id=_text(fields[5]),
        tags=_text(fields[6]),
        keys=_text(fields[7]),
        store_host=_text(fields[8]),
    )


def _sent(fields: list[str]) -> TraceEntry:
    later = len(fields) > 13
    return _by_producer(TraceKind.SENT, fields)._replace(
        body_length=int(fields[9]),
        cost_ms=int(fields[10]),
        message_type=_one_of(MESSAGE_TYPES, fields[11]),
        offset_message_id=_text(fields[12]) if later else "",
        success=_flag(fields[13] if later else fields[12]),
        client_host=_text(_at(fields, 14)),
    )


def _given(fields: list[str]) -> TraceEntry:
    return TraceEntry(
        TraceKind.GIVEN,
        time_ms=int(fields[1]),
        group=_text(fields[3]),
        request_id=fields[4],
        message_id=_text(fields[5]),
        retry_times=int(fields[6]),
        keys=_text(fields[7]),
    )


def _consumed(fields: list[str]) -> TraceEntry:
    return TraceEntry(
        TraceKind.CONSUMED,
        request_id=fields[1],
        message_id=_text(fields[2]),
        cost_ms=int(fields[3]),
        success=_flag(fields[4]),
        keys=_text(fields[5]),
        outcome=_one_of(OUTCOMES, _at(fields, 6)) if _at(fields, 6) else "",
        time_ms=int(_at(fields, 7) or 0),
        group=_text(_at(fields, 8)),
    )


def _transaction(fields: list[str]) -> TraceEntry:
    return _by_producer(TraceKind.TRANSACTION, fields)._replace(
        message_type=_one_of(MESSAGE_TYPES, fields[9]),
        transaction_id=_text(fields[10]),
        transaction_state=fields[11],
        from_check=_flag(fields[12]),
    )


_READERS: dict[str, Callable[[list[str]], TraceEntry]] = {
    TraceKind.SENT.value: _sent,
    TraceKind.GIVEN.value: _given,
    TraceKind.CONSUMED.value: _consumed,
    TraceKind.TRANSACTION.value: _transaction,
}


def _text(field: str) -> str:
    return "" if field == "null" else field


def _at(fields: list[str], number: int) -> str:
    return fields[number] if number < len(fields) else ""


def _one_of(names: tuple[str, ...], number: str) -> str:
    at = int(number)
    return names[at] if 0 <= at < len(names) else number


def _flag(field: str) -> bool:
    if field not in ("true", "false"):
        raise ValueError(field)
    return field == "true"
