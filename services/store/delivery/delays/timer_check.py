"""`config/timercheck`: how far a RocketMQ 5 broker has delivered timers (RocketMQ: ``TimerCheckpoint``). No I/O.

    offset   field                       type    big-endian; RocketMQ maps 4,096 bytes
    0        last read time              long    ms: what its wheel names below that time is delivered
    8        timerlog flush position     long
    16       queue offset                long    of `rmq_sys_wheel_timer`: all below is in its wheel
    24       master's queue offset       long
    32       data version                3 longs: state version, timestamp, counter
    64       mark                        8 bytes ``TANDEMTC``, then the CRC-32 of bytes 0 to 55: ours, not in RocketMQ

A file whose mark fits was written by us last; in any other a RocketMQ broker has the word.
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

    def encode(self) -> bytes:
        """The file's content, with our mark."""
        head = _LONGS.pack(
            self.read_ms, self.flush_position, self.queue_offset, self.master_queue_offset, *self.version
        )
        mark = _MARK + zlib.crc32(head).to_bytes(4, "big")
        return (head.ljust(_MARK_AT, b"\0") + mark).ljust(SIZE, b"\0")

    @classmethod
    def decode(cls, data: bytes) -> "TimerCheck":
        """Read a file's content. Raises BadTimerCheck."""
        if len(data) < _LONGS.size:
            raise BadTimerCheck(f"it has {len(data)} bytes")
        head = data[: _LONGS.size]
        read, flush, queue, master, *version = _LONGS.unpack(head)
        if min(read, queue, master) < 0:
            raise BadTimerCheck("it has a negative time or offset")
        mark = data[_MARK_AT : _MARK_AT + len(_MARK) + 4]
        ours = mark == _MARK + zlib.crc32(head).to_bytes(4, "big")
        return cls(read, flush, queue, master, (version[0], version[1], version[2]), ours)
