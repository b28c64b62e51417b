"""How a producer's calls become messages: properties as RocketMQ names them, and what a send gives back."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import TypedDict

from tandemmq.client.encode import Outgoing, unique_ids
from tandemmq.client.errors import not_ok
from tandemmq.client.statuses import SendStatus
from tandemmq.store.format import properties as names
from tandemmq.store.v1 import store_pb2

Seconds = float | timedelta
"""A duration."""


class Extras(TypedDict, total=False):
    """What a message may have beside its topic and body."""

    tag: str
    """What consumers filter by."""
    keys: Sequence[str] | str
    """By which the message can be found; a text is one key."""
    properties: Mapping[str, str]
    repeatable: bool
    """The UNIQ_KEY among `properties` is of this send alone: see `Outgoing`."""
    order_key: str
    """Messages of one key lie in one queue, in the order in which they were sent; groups made with --fifo keep it."""
    queue_id: int | None
    """The queue to append to; the store chooses otherwise."""


@dataclass(frozen=True, slots=True)
class Sent:
    """The receipt of a message. `status`: `PUT_OK`, or what is not known of its copies (see `SendStatus`)."""

    topic: str
    unique_key: str
    message_id: str
    queue_id: int
    queue_offset: int
    status: SendStatus
    recall_handle: str = ""
    """Of a message that waits for its time: `Producer.recall` takes it."""
    transaction_handle: str = ""
    reason: str = ""
    """Why it is not stored; empty if it is."""


def outgoing(topic: str, body: bytes | str, extras: Extras, **special: str) -> Outgoing:
    """A message to send, with the UNIQ_KEY that it keeps however often it is sent. `special`: further properties."""
    message = Outgoing(
        topic,
        body.encode() if isinstance(body, str) else body,
        extras.get("tag", ""),
        extras.get("keys", ()),
        {**extras.get("properties", {}), **special},
        extras.get("queue_id"),
    )
    named = dict(message.properties)
    repeatable = extras.get("repeatable", False) or names.UNIQ_KEY not in named
    named.setdefault(names.UNIQ_KEY, new_id())
    if order_key := extras.get("order_key", ""):
        named[names.SHARDING_KEY] = order_key
    return replace(message, properties=named, repeatable=repeatable)


def sent(topic: str, receipt: store_pb2.SendReceipt) -> Sent:
    """What a send gives back."""
    return Sent(
        topic,
        receipt.unique_key,
        receipt.message_id,
        receipt.queue_id,
        receipt.queue_offset,
        SendStatus(store_pb2.SendStatus.Name(receipt.status)),
        receipt.recall_handle,
        receipt.transaction_handle,
        receipt.reason,
    )


def check_ok(*receipts: Sent) -> None:
    """Raises RequestFailed (NotReplicated, NotDurable) unless all say PUT_OK; `error.sent` has what is stored."""
    bad = next((one for one in receipts if one.status is not SendStatus.PUT_OK), None)
    if bad is None:
        return
    stored = tuple(one for one in receipts if one.status.stored)
    reason = bad.reason or "it is stored, and not known to be as safe as it should be"
    raise not_ok(bad.status, f"A message of topic {bad.topic} ended with {bad.status}: {reason}.", stored)


def seconds_of(given: Seconds) -> float:
    """A duration in seconds. Raises ValueError for a negative one."""
    seconds = given.total_seconds() if isinstance(given, timedelta) else float(given)
    if not 0 <= seconds < float("inf"):
        raise ValueError(f"{given!r} is no duration: give seconds, 0 and more, or a timedelta")
    return seconds


def milliseconds_at(when: datetime | float) -> int:
    """A time as milliseconds since 1970 UTC; a number is seconds since then. Raises ValueError."""
    if isinstance(when, datetime):
        if when.tzinfo is None:
            raise ValueError(f"{when!r} has no time zone: say datetime(..., tzinfo=timezone.utc), or .astimezone()")
        return round(when.timestamp() * 1000)
    return round(when * 1000)


def new_id() -> str:
    """A UNIQ_KEY that no other message has."""
    return unique_ids.next(time.time_ns() // 1_000_000)
