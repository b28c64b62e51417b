"""What a RocketMQ 5 broker notes of messages that consumers have popped. No I/O and no clock.

In the topics `rmq_sys_REVIVE_LOG_<cluster>`: a checkpoint for each pop (tag ``ck``), and what was acknowledged of it
(``ack``, ``bAck``), each a JSON object; they come there through the timers, when the invisible time is over. The
group `CID_RMQ_SYS_REVIVE_GROUP` has the offset of the last checkpoint that was dealt with. (``PopCheckPoint``,
``AckMsg``, ``PopReviveService``.)
"""

import json
from collections.abc import Iterable
from typing import Any, NamedTuple

REVIVE_TOPICS = "rmq_sys_REVIVE_LOG_"
REVIVE_GROUP = "CID_RMQ_SYS_REVIVE_GROUP"
CHECKPOINT, ACK, BATCH_ACK = "ck", "ack", "bAck"
"""Tags of the messages."""

_MOST_MESSAGES = 127


class BadPop(ValueError):
    """The message is no checkpoint, or no acknowledgement."""


class PopKey(NamedTuple):
    """Names a pop."""

    topic: str
    group: str
    queue: int
    start: int
    popped_ms: int


class Pop:
    """One pop, and what of it is not acknowledged yet."""

    def __init__(self, key: PopKey, due_ms: int, offsets: Iterable[int], log_offset: int) -> None:
        """`log_offset`: queue offset of the checkpoint itself."""
        self.key = key
        self.due_ms = due_ms
        self.open = list(offsets)
        """Queue offsets of the messages, in `key.topic`."""
        self.log_offset = log_offset

    def acknowledged(self, offsets: Iterable[int]) -> None:
        """Messages are dealt with; others than its own are passed over."""
        gone = set(offsets)
        self.open = [offset for offset in self.open if offset not in gone]


def read_checkpoint(body: bytes, log_offset: int) -> Pop:
    """Read a checkpoint. Raises BadPop."""
    entry = _object(body)
    key = PopKey(_text(entry, "t"), _text(entry, "c"), *(_number(entry, name) for name in ("q", "so", "pt")))
    number, bits, steps = _number(entry, "n"), entry.get("bm", 0), entry.get("d") or range(_number(entry, "n"))
    steps = list(steps) if isinstance(steps, list | range) else []
    if number > _MOST_MESSAGES or len(steps) > _MOST_MESSAGES or type(bits) is not int:
        raise BadPop(f"it has {number} messages")
    if not all(type(step) is int and step >= 0 for step in steps):
        raise BadPop("its offsets make no sense")
    offsets = [key.start + step for at, step in enumerate(steps) if not bits >> at & 1]
    return Pop(key, key.popped_ms + _number(entry, "it"), offsets, log_offset)


def read_acknowledged(body: bytes) -> tuple[PopKey, list[int]]:
    """Read an acknowledgement, of one message or of a batch: the pop, and the messages' offsets. Raises BadPop."""
    entry = _object(body)
    key = PopKey(
        _text(entry, "t", "topic"),
        _text(entry, "c", "consumerGroup"),
        _number(entry, "q", "queueId"),
        _number(entry, "so", "startOffset"),
        _number(entry, "pt", "popTime"),
    )
    several = entry.get("aol", entry.get("ackOffsetList"))
    if not several:
        return key, [_number(entry, "ao", "ackOffset")]
    if not (isinstance(several, list) and all(type(one) is int for one in several)):
        raise BadPop("its offsets make no sense")
    return key, several


def _object(body: bytes) -> dict[str, Any]:
    try:
        entry = json.loads(body)
    except (ValueError, RecursionError):
        raise BadPop("it is no JSON") from None
    if not isinstance(entry, dict):
        raise BadPop("it is no JSON object")
    return entry


def _text(entry: dict[str, Any], *names: str) -> str:
    for name in names:
        if isinstance(entry.get(name), str) and entry[name]:
            return str(entry[name])
    raise BadPop(f"it has no {names[0]}")


def _number(entry: dict[str, Any], *names: str) -> int:
    for name in names:
        value = entry.get(name)
        if type(value) is int and 0 <= value < 1 << 62:
            return value
    raise BadPop(f"it has no {names[0]}")
