"""What a master owes one slave: where sending begins, what comes next, what its reports mean, when to give it up.

No I/O and no clock: times are handed in, in seconds of any steady clock.
"""

from dataclasses import dataclass
from typing import NamedTuple, Protocol

from tandemmq.common.errors import Kind, TandemError


class LogBounds(Protocol):
    """How far the log is; `LogView` is one."""

    @property
    def min_offset(self) -> int:
        """Of the oldest byte."""

    @property
    def max_offset(self) -> int:
        """After the last byte."""

    @property
    def file_size(self) -> int:
        """Of each log file."""


class TransferRefused(TandemError):
    """This connection cannot go on."""

    kind = Kind.NOT_POSSIBLE
    reason = "refused"
    """Short and constant: a label of the metrics."""


class Negative(TransferRefused):
    """A report below 0."""

    reason = "negative"


class Ahead(TransferRefused):
    """The slave has more than we have."""

    reason = "ahead"
    remedy = "the slave followed another master, or this one lost its end: promote the slave, or seed it anew"


class BelowMin(TransferRefused):
    """The slave needs what retention has removed."""

    reason = "below_min"
    remedy = "seed the slave anew: its log ends before ours begins"


class BeyondSent(TransferRefused):
    """An ack of bytes that were never sent on this connection."""

    reason = "beyond_sent"


class Silent(TransferRefused):
    """Nothing arrived for haHousekeepingInterval."""

    reason = "silent"


class LogCut(TransferRefused):
    """Our log is shorter now than what was sent: the store was started anew and had lost its end."""

    reason = "log_cut"


@dataclass(frozen=True, slots=True)
class TransferRules:
    """What the settings say of sending. Times in seconds."""

    batch_size: int = 262_144
    heartbeat: float = 5.0
    housekeeping: float = 20.0
    bytes_per_second: int | None = None
    from_last_file: bool = False


class Frame(NamedTuple):
    """One TRANSFER: `size` bytes of the log from `offset` on; a heartbeat if there are none."""

    offset: int
    size: int


class Transfer:
    """One slave's connection."""

    __slots__ = (
        "_asked",
        "_last_read",
        "_last_write",
        "_quota_from",
        "_quota_used",
        "_rules",
        "acked_offset",
        "begun",
        "next_offset",
        "report_seconds",
    )

    def __init__(self, rules: TransferRules, now: float) -> None:
        self._rules = rules
        self._last_read = self._last_write = self._quota_from = now
        self._quota_used = 0
        self._asked = 0
        self.begun = False
        """Whether the slave has said where to begin."""
        self.next_offset = 0
        """After the last byte that was planned: what the slave may ack at most."""
        self.acked_offset = 0
        """The slave has everything below."""
        self.report_seconds = rules.heartbeat
        """So often the slave reports while it has everything."""

    @property
    def heard_at(self) -> float:
        """When the slave was last heard of."""
        return self._last_read

    # -- what the slave says ----------------------------------------------------------------------------------------

    def heard(self, now: float) -> None:
        """Bytes have arrived, whatever they are."""
        if self.begun:  # before that only a report counts, else half a report a time would hold a connection for ever
            self._last_read = now

    def report(self, offset: int, log: LogBounds, now: float, *, compares: bool = False) -> bool:
        """The slave reports; tells whether that is news: the first report, or a higher offset.

        The first report of a slave that `compares` is no ack: it asks for the end of what it has once more, and acks
        when it has found that equal. Until then it repeats what it asked for, to be known as alive. A slave of RocketMQ
        has what it says, if it is of our history at all.

        Raises:
            Negative, Ahead, BelowMin, BeyondSent: the connection must be closed.
        """
        if offset < 0:
            raise Negative(f"a report of {offset}")
        self._last_read = now
        if not self.begun:
            self._asked, self.next_offset = offset, self._beginning(offset, log)
            self.acked_offset = offset if offset > 1 and not compares else 0
            self.begun = True
            return True
        if offset > self.next_offset:
            raise BeyondSent(f"an ack of {offset}, but only what lies below {self.next_offset} was sent")
        if offset <= self.acked_offset or (compares and offset <= self._asked < log.max_offset):
            return False
        self.acked_offset = offset
        return True

    def _beginning(self, offset: int, log: LogBounds) -> int:
        if offset == 0:
            if self._rules.from_last_file:
                return max(log.max_offset - log.max_offset % max(log.file_size, 1), log.min_offset)
            return log.min_offset
        if offset == 1:  # the whole history, please: no log ends at 1
            return max(1, log.min_offset)
        if offset > log.max_offset:
            raise Ahead(f"the slave's log ends at {offset}, ours at {log.max_offset}")
        if offset < log.min_offset:
            raise BelowMin(f"the slave asks for offset {offset}, our log begins at {log.min_offset}")
        return offset

    # -- what it gets -----------------------------------------------------------------------------------------------

    def plan(self, log: LogBounds, now: float) -> Frame | None:
        """The next frame to write; it counts as sent from now on. None: nothing is due.

        Raises:
            BelowMin, LogCut: the connection must be closed.
        """
        if not self.begun:
            return None
        if now - self._last_write > self._rules.heartbeat:
            self._last_write = now
            return Frame(self.next_offset, 0)
        size = self._sendable(log)
        if size <= 0:
            return None
        if self._rules.bytes_per_second is not None:
            size = min(size, self._quota(now))
            if size <= 0:
                return None
            self._quota_used += size
        frame = Frame(self.next_offset, size)
        self.next_offset += size
        self._last_write = now
        return frame

    def wrote(self, now: float) -> None:
        """Bytes were written: the link is not silent."""
        self._last_write = now

    def behind(self, log: LogBounds) -> int:
        """Bytes that are still to be planned."""
        return log.max_offset - self.next_offset if self.begun else 0

    def _sendable(self, log: LogBounds) -> int:
        """Size of the next body by the log and the frame's limits alone; 0 or less: there is none."""
        begin, end = self.next_offset, log.max_offset
        if begin >= end:
            self._check_cut(log)
            return 0
        if begin < log.min_offset:
            raise BelowMin(f"offset {begin} is the slave's next, but our log begins at {log.min_offset} by now")
        return min(end - begin, self._rules.batch_size, log.file_size - begin % log.file_size)

    def _check_cut(self, log: LogBounds) -> None:
        if self.begun and self.next_offset > max(log.max_offset, 1):
            raise LogCut(f"offset {self.next_offset} is the slave's next, but our log ends at {log.max_offset} now")

    def _quota(self, now: float) -> int:
        if now - self._quota_from >= 1.0:
            self._quota_from, self._quota_used = now, 0
        return (self._rules.bytes_per_second or 0) - self._quota_used

    # -- time -------------------------------------------------------------------------------------------------------

    def check(self, log: LogBounds, now: float) -> None:
        """What must hold at any time.

        Raises:
            Silent, LogCut: the connection must be closed.
        """
        if now - self._last_read > self._rules.housekeeping:
            raise Silent(f"nothing arrived for {now - self._last_read:.1f} s")
        self._check_cut(log)

    def due(self, now: float, *, busy: bool = False) -> float:
        """Just after this moment: look again (`check`, `plan`) even if nothing has happened. Never before `now`.

        While the sender is `busy` with what was planned, more would not be planned.
        """
        due = self._last_read + self._rules.housekeeping
        if self.begun and not busy:
            due = min(due, self._last_write + self._rules.heartbeat)
            if self._rules.bytes_per_second is not None and self._quota_used:
                due = min(due, self._quota_from + 1.0)
        return max(due, now)
