"""A log for Spark to read: several topics, every message with a key and a unique key of its own."""

from pathlib import Path
from struct import Struct

import numpy as np

from bench import payloads
from tandemmq.store.format.host import Host
from tandemmq.store.log.config import StoreConfig
from tandemmq.store.log.message_store import MessageStore
from tandemmq.store.log.segments.commit_log import EncodedBatch

TOPICS, QUEUES = 4, 4
KEYS_EACH = 2
_HOST = Host("127.0.0.1", 10911)
_RUN = 64
"""Messages of one queue that stand one after the other."""
_PIECE = Struct(">5i")
_DIGITS = 10
_KEY = b"order-" + b"0" * _DIGITS
_UNIQUE = b"AC11000100002A139E5500" + b"0" * _DIGITS
_PROPERTIES = b"KEYS\x01" + _KEY + b"\x02TAGS\x01TagA\x02UNIQ_KEY\x01" + _UNIQUE + b"\x02"
_FIXED = 91 + len("bench-0") + len(_PROPERTIES)
"""What a record has besides its body."""
_ROOM = 4 << 20
"""Left free, so that the log fills its last file and needs no other."""


def fill(root: Path, megabytes: int, record_size: int) -> dict[str, int]:
    """Append so much in records of `record_size` bytes, without dispatching or closing, and sync it.

    Gives the log's end and its number of messages. What lies beside the log is what a kill -9 leaves at its worst.
    """
    log = MessageStore.open(StoreConfig(root, compiled_walker="always")).commit_log
    blob, places = _batch(record_size - _FIXED)
    messages = number = 0
    while log.max_offset < (megabytes << 20) - _ROOM:
        digits = _decimal(messages + np.arange(_RUN))
        for place in places:
            blob[:, place : place + _DIGITS] = digits
        queue, topic = number % QUEUES, number // QUEUES % TOPICS
        log.append_batch(EncodedBatch(f"bench-{topic}", queue, blob.tobytes(), _HOST, _HOST, born_timestamp=1))
        messages += _RUN
        number += 1
    for file in log.files:
        file.sync()
    return {"end": log.max_offset, "messages": messages}


def key_of(message: int) -> str:
    """The key of a message, counted from 0."""
    return _KEY[:-_DIGITS].decode() + f"{message:0{_DIGITS}d}"


def _batch(body_size: int) -> tuple["np.ndarray", list[int]]:
    """A row of bytes a message, and where in a row the digits of its keys stand."""
    body = payloads.body(body_size)
    piece = _PIECE.pack(_PIECE.size + body_size + 2 + len(_PROPERTIES), 0, 0, 0, body_size) + body
    piece += len(_PROPERTIES).to_bytes(2, "big") + _PROPERTIES
    rows = np.tile(np.frombuffer(piece, np.uint8), (_RUN, 1))
    begin = len(piece) - len(_PROPERTIES)
    ends = [_PROPERTIES.index(key) + len(key) for key in (_KEY, _UNIQUE)]
    return rows, [begin + end - _DIGITS for end in ends]


def _decimal(numbers: "np.ndarray") -> "np.ndarray":
    """A row of ASCII digits a number."""
    powers = 10 ** np.arange(_DIGITS - 1, -1, -1, dtype=np.int64)
    return (numbers[:, None] // powers % 10 + ord("0")).astype(np.uint8)
