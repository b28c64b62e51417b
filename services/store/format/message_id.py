"""The two ids of a message: where it is stored (offset id) and what its producer called it (unique id).

    offset id   4 or 16 bytes  address of the store       unique id   4 or 16 bytes  address of the producer
                int            port                                   2 bytes        process id
                long           physical offset                        4 bytes        class loader hash (any number)
                                                                      4 bytes        ms since the month began, unsigned
                                                                      2 bytes        counter

Both are written as upper-case hex: 32 or 56 characters. Source: MessageDecoder, MessageClientIDSetter.
"""

from datetime import datetime, tzinfo

from tandemmq.store.format.errors import FormatError
from tandemmq.store.format.host import Host

_V4_CHARS = 32
_V6_CHARS = 56


class IllegalMessageId(FormatError):
    """Text that is no message id."""


def encode_offset_id(host: Host, offset: int) -> str:
    """The id of the record at ``offset`` in the store at ``host``: what a send answers."""
    return f"{host.digits}{offset & 0xFFFF_FFFF_FFFF_FFFF:016X}"


def decode_offset_id(text: str) -> tuple[Host, int]:
    """Store and physical offset of an offset id; IllegalMessageId if it is none. The length tells IPv4 from IPv6."""
    data = _unhex(text)
    return Host.unpack(data[:-8]), int.from_bytes(data[-8:], "big", signed=True)


_LATEST = 1 << 47
"""In the year 6429. A later time counts as this one: no calendar of ours has a year 10,000."""


class UniqueIdGenerator:
    """Makes the unique ids of one process, none twice, whatever the clock does. Not safe for several threads.

    The time in them never goes back, and goes on where all numbers of a millisecond are used up.

    ``ip``: 4 or 16 address bytes; ``tz`` None: local time, as Java clients have it.
    """

    def __init__(self, ip: bytes, pid: int, loader: int, tz: tzinfo | None = None) -> None:
        self._prefix = f"{ip.hex().upper()}{pid & 0xFFFF:04X}{loader & 0xFFFFFFFF:08X}"
        self._tz = tz
        self._counter = 0
        self._month_start = self._month_end = 0
        self._time, self._first = -1, 0  # of the last id, and the first number that was given at this time

    def next(self, now_ms: int) -> str:
        """The next id, for a message made at ``now_ms``, which its sender may have made up."""
        counter = self._counter
        if now_ms > _LATEST:
            now_ms = _LATEST
        if now_ms > self._time:
            self._time, self._first = now_ms, counter
        elif counter == self._first:
            self._time += 1
        now_ms = self._time
        if now_ms >= self._month_end:
            now = datetime.fromtimestamp(now_ms / 1000, self._tz)
            self._month_start, self._month_end = _month_start(now), _month_start(now, +1)
        since = now_ms - self._month_start
        self._counter = counter + 1 & 0xFFFF
        tail = (since & 0xFFFFFFFF) << 16 | counter
        return f"{self._prefix}{tail:012X}"


def _month_start(now: datetime, months: int = 0) -> int:
    month = now.year * 12 + now.month - 1 + months
    start = now.replace(year=month // 12, month=month % 12 + 1, day=1, hour=0, minute=0, second=0, microsecond=0)
    return int(start.timestamp()) * 1000


def _unhex(text: str) -> bytes:
    if len(text) not in (_V4_CHARS, _V6_CHARS):
        raise IllegalMessageId(f"a message id has {_V4_CHARS} or {_V6_CHARS} characters: {text!r}")
    try:
        data = bytes.fromhex(text)
    except ValueError as error:
        raise IllegalMessageId(f"not a message id: {text!r}") from error
    if 2 * len(data) != len(text):  # fromhex skips blanks
        raise IllegalMessageId(f"not a message id: {text!r}")
    return data
