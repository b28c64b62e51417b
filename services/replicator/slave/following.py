"""What a slave does on one HA connection: what it asks for, what it accepts, what it reports. No I/O, no clock.

A connection has three stages::

    first_report    asks for the log from R on
    comparing       what arrives below our own end must be what we have there
    following       what arrives continues our log; reports say how far we have it

R lies up to 64 KiB before our end, so that a fork is found before a byte is appended. With an empty log R is 1, which
stands for the whole history: no real log ends there, and a RocketMQ master sends from there as asked (0 would mean
"the last file" to it). Byte 0 is then ours to add; it is the highest byte of the first record's size, and always 0.

Every frame, heartbeats included, must be at the offset that comes next; with an empty log the first one may also be at
the beginning of any file. Times are in seconds of any steady clock.
"""

from dataclasses import dataclass
from typing import NamedTuple

from tandemmq.replicator.frames import BadFrame, Body, Heartbeat, TransferReader
from tandemmq.replicator.slave.overlap import LocalLog
from tandemmq.replicator.slave.slave_errors import (
    BadStream,
    LogsDiffer,
    MasterBeginsLater,
    MasterEndsEarlier,
    MasterHasNothing,
    MasterSilent,
    NotAMaster,
    OlderMaster,
    OtherFileSize,
    WrongOffset,
)

WHOLE_HISTORY = 1
"""The first report of an empty log that wants everything."""

NOT_SENT = -1
"""Position of the log's first byte, when the master begins after it: it is 0, and is to be added."""

STALL_SECONDS = 2.5
"""A master that says so long that it has no more has no more. (RocketMQ 5 sends heartbeats for up to a second while its
flow control holds it back.)"""


class MasterLog(NamedTuple):
    """What a master said of itself before the first report."""

    min_offset: int
    max_offset: int
    file_size: int
    epoch: int
    is_slave: bool = False
    fenced_by_epoch: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class FollowRules:
    """The settings that matter here."""

    from_last_file: bool = False
    """An empty log asks for the master's last file only."""
    ack_flushed: bool = False
    """Reports count what is on disk, not what is in the page cache."""
    report_seconds: float = 5.0
    silence_seconds: float = 20.0


class FollowingConnection:
    """One connection's state. Any error that it raises ends the connection."""

    __slots__ = (
        "_asked", "_base", "_begin", "_flushed", "_last_read", "_last_write", "_log", "_master", "_overlap", "_placed",
        "_reader", "_reported", "_rules", "_stalled", "_stored", "_suspect", "_wanted", "heartbeats", "received_offset",
    )  # fmt: skip

    def __init__(
        self,
        log: LocalLog,
        overlap: bytes = b"",
        master: MasterLog | None = None,
        rules: FollowRules | None = None,
        begin: int = WHOLE_HISTORY,
    ) -> None:
        """`overlap` is the end of our log, from the offset on where the comparison begins.

        `begin` is what an empty log asks for: the whole history, or the offset of the master's first file.

        `master` is None when the master did not introduce itself, as RocketMQ does not.

        Raises:
            OtherFileSize, OlderMaster, NotAMaster, MasterBeginsLater, MasterEndsEarlier: what the master said is
                reason enough.
        """
        self._log = log
        self._master = master
        self._rules = rules or FollowRules()
        self._reader = TransferReader()
        self._overlap = overlap
        self._begin = log.max_offset - len(overlap)
        """Offset of the first byte of `_overlap`."""
        self._wanted = begin
        self._stored = log.max_offset
        self._flushed = log.flushed_offset
        self._asked = 0
        self._reported = 0
        self._placed = not log.empty
        """Whether it is known where our log goes on; an empty one learns it from the first frame that says so."""
        self._base = 0
        """Where an empty log begins: below it the master has nothing."""
        self._last_read = self._last_write = 0.0
        self._suspect: float | None = None
        """The time of the last byte, if the master was found silent since then."""
        self._stalled: float | None = None
        """Since when the master says, below our end, that it has no more."""
        self.received_offset = 0
        """After the last byte that arrived on this connection: what must come next."""
        self.heartbeats = 0
        if master is not None:
            check_identity(log, master)
            _check_ends(log, master)

    @property
    def comparing(self) -> bool:
        """Whether the end of our log has not been found equal yet."""
        return self.received_offset < self._log.max_offset

    @property
    def reported_offset(self) -> int:
        """What the master was told last; 0 while an empty log has only asked."""
        return self._reported if self._placed else 0

    @property
    def stored_offset(self) -> int:
        """Up to where our store has whole, checked records."""
        return self._stored

    @property
    def frames(self) -> int:
        """Frames received, heartbeats included."""
        return self._reader.frames

    @property
    def heard_log(self) -> bool:
        """Whether any byte of the log arrived."""
        return self.received_offset > max(self._asked, self._base)

    @property
    def in_vain(self) -> bool:
        """Whether an empty log waits for bytes that may never come: the master tells nothing, and only heartbeats."""
        return self.heartbeats > 0 and not self._placed and self._master is None and not self._rules.from_last_file

    @property
    def between_frames(self) -> bool:
        """Whether no frame is half received."""
        return self._reader.between_frames

    def first_report(self, now: float) -> int:
        """The offset that opens the conversation. To be called once, before anything else."""
        if not self._log.empty:
            self._asked = self._begin
            if self._master is not None:
                self._asked = max(self._asked, self._master.min_offset)
        elif not self._rules.from_last_file:
            self._asked = self._wanted
        self.received_offset = self._reported = self._asked
        self._last_read = self._last_write = now
        return self._asked

    def received(self, data: memoryview | bytes, position: int, now: float) -> list[Body]:
        """Takes what one read brought; gives the stretches that continue our log, in order.

        `position` is where `data` begins; the stretches' positions count from there. A stretch at `NOT_SENT` is the
        log's first byte, 0. After an error nothing of `data` may be used.

        Raises:
            BadStream, WrongOffset, OtherFileSize, LogsDiffer, MasterEndsEarlier, MasterHasNothing: the connection
                must be closed.
        """
        self._last_read = now
        try:
            events = self._reader.feed(data, position)
        except BadFrame as error:
            raise BadStream(f"{error.message} (expected offset {self.received_offset})") from error
        self._check_rest(events[-1] if events else None, position + len(data))
        bodies: list[Body] = []
        for event in events:
            if isinstance(event, Heartbeat):
                self._take_heartbeat(event.offset, now)
            else:
                self._take_body(event, data, event.position - position, bodies)
        return bodies

    def stored(self, max_offset: int, flushed_offset: int) -> None:
        """Our store has everything below `max_offset`, and on disk everything below `flushed_offset`."""
        self._stored = max_offset
        self.flushed(flushed_offset)

    def flushed(self, flushed_offset: int) -> None:
        """Our store has everything below an offset on disk; also told without an ack."""
        self._flushed = max(self._flushed, flushed_offset)

    def report(self, now: float) -> int | None:
        """The report that is due because we have more than we said; None if we do not.

        It never names more than what arrived on this connection: what else our store has, this master may not have.
        """
        if self.comparing:
            return None
        have = min(self._stored, self._flushed) if self._rules.ack_flushed else self._stored
        have = max(min(have, self.received_offset), self._base)
        if have <= self._reported:
            return None
        self._reported = have
        self._last_write = now
        return have

    def tick(self, now: float, *, paused: bool = False) -> int | None:
        """What time demands: the last report once more, so that the master sees us alive, or None.

        While we are `paused`, that is do not read, the master cannot be heard and is not silent. Nor is it at the first
        look that finds it so: this process may have slept, and has not read yet what waits. Raises MasterSilent.
        """
        if paused:
            self._last_read = now
        if now - self._last_read > self._rules.silence_seconds:
            if self._suspect == self._last_read:
                raise MasterSilent(f"nothing arrived for {self._rules.silence_seconds:g} seconds")
            self._suspect = self._last_read
        if now - self._last_write < self._rules.report_seconds:
            return None
        self._last_write = now
        return self._reported

    def silent_seconds(self, now: float) -> float:
        """Since the last byte arrived."""
        return now - self._last_read

    def _take_heartbeat(self, offset: int, now: float) -> None:
        self.heartbeats += 1
        if offset != self.received_offset or not self._placed:
            self._place(offset)
        if not self.comparing:
            return
        if self._stalled is None:
            self._stalled = now
        elif now - self._stalled >= STALL_SECONDS:
            end = self._log.max_offset
            if self.heard_log:
                raise MasterEndsEarlier(f"the master's log ends at offset {offset}, ours at {end}")
            raise MasterHasNothing(f"the master sends nothing from offset {offset} on; our log ends at {end}")

    def _take_body(self, body: Body, data: memoryview | bytes, at: int, bodies: list[Body]) -> None:
        """`at` is where the body lies in `data`."""
        offset, position, size = body
        self._check_crossing(offset, size)
        if offset != self.received_offset or not self._placed:
            self._place(offset)
            if offset == WHOLE_HISTORY:
                bodies.append(Body(0, NOT_SENT, 1))
            self._placed = True
        self._stalled = None
        known = min(max(self._log.max_offset - offset, 0), size)
        if known:
            self._compare(offset, data[at : at + known])
        self.received_offset = offset + size  # not before: who differs has not been found equal
        offset, position, size = offset + known, position + known, size - known
        if size:
            bodies.append(Body(offset, position, size))

    def _place(self, offset: int) -> None:
        """A frame is not where our log goes on: legal only while an empty log does not know. Raises WrongOffset."""
        if self._placed:
            what = "bytes are missing before it" if offset > self.received_offset else "it goes back"
            raise WrongOffset(f"a frame at offset {offset}, expected was {self.received_offset}: {what}")
        if offset % self._log.file_size and not offset == self._asked == WHOLE_HISTORY:
            raise WrongOffset(f"the first frame is at offset {offset}: our log is empty and can begin with a file only")
        self.received_offset = offset
        if offset > WHOLE_HISTORY:
            self._base = offset
            self._placed = True

    def _compare(self, offset: int, theirs: memoryview | bytes) -> None:
        """Raises LogsDiffer."""
        begin = offset - self._begin
        ours = self._overlap[begin : begin + len(theirs)]
        if theirs != ours:
            at = next(index for index, pair in enumerate(zip(ours, theirs, strict=True)) if pair[0] != pair[1])
            where = f"from offset {offset + at} on" if offset + at > self._asked else f"at or before {offset + at}"
            raise LogsDiffer(f"the master has other bytes than we {where}; our log ends at {self._log.max_offset}")

    def _check_rest(self, last: Heartbeat | Body | None, end: int) -> None:
        """The rest of a frame that is half received must not cross files either. `end` is where the data ended."""
        offset, rest = self._reader.next_offset, self._reader.missing
        if rest and isinstance(last, Body) and last.position + last.size == end:
            offset, rest = offset - 1, rest + 1  # the frame has a byte before the rest
        self._check_crossing(offset, rest)

    def _check_crossing(self, offset: int, size: int) -> None:
        """Raises OtherFileSize for bytes that would cross two of our files: a master never sends such a frame."""
        file_size = self._log.file_size
        if size and offset // file_size != (offset + size - 1) // file_size:
            raise OtherFileSize(
                f"a frame goes on from offset {offset} for {size} bytes, across two of our files of {file_size} bytes"
            )


def check_identity(log: LocalLog, master: MasterLog) -> None:
    """Whether a store with our log may follow that master at all. Raises NotAMaster, OlderMaster, OtherFileSize."""
    if master.is_slave:
        raise NotAMaster("the node at haMasterAddress is a slave")
    if master.fenced_by_epoch > master.epoch:
        raise NotAMaster(f"that master (epoch {master.epoch}) was replaced by one of epoch {master.fenced_by_epoch}")
    if master.epoch < max(log.epoch, log.promised):
        ours = f"ours {log.epoch}" if log.promised <= log.epoch else f"{log.promised} was promised"
        raise OlderMaster(f"the master's epoch is {master.epoch}, {ours}")
    if master.file_size != log.file_size:
        raise OtherFileSize(f"the master's log files have {master.file_size} bytes, ours {log.file_size}")


def _check_ends(log: LocalLog, master: MasterLog) -> None:
    """Raises MasterBeginsLater, MasterEndsEarlier."""
    if log.empty:
        return
    if master.min_offset > log.max_offset:
        raise MasterBeginsLater(f"the master's log begins at offset {master.min_offset}, ours ends at {log.max_offset}")
    if master.max_offset < log.max_offset:
        raise MasterEndsEarlier(f"the master's log ends at offset {master.max_offset}, ours at {log.max_offset}")
