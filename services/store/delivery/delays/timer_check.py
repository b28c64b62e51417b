"""`config/timercheck`: how far a RocketMQ 5 broker has delivered timers (RocketMQ: ``TimerCheckpoint``). No I/O.

    offset   field                       type    big-endian; RocketMQ maps 4,096 bytes
    0        last read time              long    ms: what its wheel names below that time is delivered
    8        timerlog flush position     long
    16       queue offset                long    of `rmq_sys_wheel_timer`: all below is in its wheel
    24       master's queue offset       long
    32       data version                3 longs: state version, timestamp, counter
    64       mark                        8 bytes ``TANDEMTC``, the longs once more, their CRC-32; ours, not RocketMQ's

A file whose fields are those of the mark was written by us last. Where a single bit is another, it has rotted: times
are whole seconds, of which no two differ in one bit only. In any other a RocketMQ broker has the word.
"""

import struct
import zlib
from dataclasses import dataclass

SIZE = 4_096
_LONGS = struct.Struct(">7q")
_MARK = b"TANDEMTC"
_MARK_AT = 64


class BadTimerCheck(ValueError):
    """The bytes are no such file."""


@dataclass(frozen=True, slots=True)
class TimerCheck:
    """What the file says."""

    read_ms: int = 0
    flush_position: int = 0
    queue_offset: int = 0
    master_queue_offset: int = 0
    version: tuple[int, int, int] = (0, 0, 0)
    ours: bool = False
    """Whether this project wrote it last."""
    rotten: bool = False
    """It has changed since; the fields are as they were written."""

    @property
    def longs(self) -> bytes:
        """The fields alone, as a slave is told them."""
        return _LONGS.pack(
            self.read_ms, self.flush_position, self.queue_offset, self.master_queue_offset, *self.version
        )

    def encode(self) -> bytes:
        """The file's content, with our mark."""
        head = self.longs
        mark = _MARK + head + zlib.crc32(head).to_bytes(4, "big")
        return (head.ljust(_MARK_AT, b"\0") + mark).ljust(SIZE, b"\0")

    @classmethod
    def decode(cls, data: bytes) -> "TimerCheck":
        """Read a file's content. Raises BadTimerCheck."""
        if len(data) < _LONGS.size:
            raise BadTimerCheck(f"it has {len(data)} bytes")
        head, kept = data[: _LONGS.size], _kept(data)
        changed = -1 if kept is None else (int.from_bytes(head, "big") ^ int.from_bytes(kept, "big")).bit_count()
        if kept is not None and changed == 1:
            head = kept
        read, flush, queue, master, *version = _LONGS.unpack(head)
        if min(read, queue, master) < 0:
            raise BadTimerCheck("it has a negative time or offset")
        numbers = version[0], version[1], version[2]
        return cls(read, flush, queue, master, numbers, ours=changed in (0, 1), rotten=changed == 1)


def _kept(data: bytes) -> bytes | None:
    """The fields as our mark has them; None where there is no mark, or not a whole one."""
    at = _MARK_AT + len(_MARK)
    kept, check = data[at : at + _LONGS.size], data[at + _LONGS.size : at + _LONGS.size + 4]
    whole = data[_MARK_AT:at] == _MARK and check == zlib.crc32(kept).to_bytes(4, "big")
    return kept if whole else None
