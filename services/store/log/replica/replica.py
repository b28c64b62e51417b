"""What a store does as a slave, and how it changes its role.

A slave's log is its master's, byte for byte: it takes stretches of any length, which may end inside a record. Whole
records that are right (see `replica_check`) belong to the log from then on, and get their queue units and index entries
as on a master; what lies after them is waiting for its rest, and nobody sees it. Messages of clients are refused. All
methods run on the event loop.
"""

import logging

from tandemmq.common.settings.broker_role import BrokerRole
from tandemmq.store.log.dispatch import Dispatcher
from tandemmq.store.log.errors import CorruptReplica, DiskFull, ForkedLog, NotWritable, WrongRole, disk_error
from tandemmq.store.log.marks.running_flags import Reason, RunningFlags
from tandemmq.store.log.parts import StoreParts
from tandemmq.store.log.replica.mastership import Mastership
from tandemmq.store.log.replica.replica_check import ReplicaCheck
from tandemmq.store.log.replica.replica_group import GroupFile, ReplicaGroup
from tandemmq.store.log.replica.replica_mark import ReplicaMark
from tandemmq.store.log.segments.commit_log import CommitLog
from tandemmq.store.log.segments.flush import GroupCommit

log = logging.getLogger(__name__)

_FATAL = (Reason.CLOSED, Reason.FLUSH_FAILED)


class Replica:
    """The slave's side of a store: it follows, and it is promoted."""

    def __init__(
        self, parts: StoreParts, commit_log: CommitLog, flush: GroupCommit, dispatcher: Dispatcher, flags: RunningFlags
    ) -> None:
        """Refuse or take messages according to the role that the directory has."""
        self._parts = parts
        self._log = commit_log
        self._flush = flush
        self._dispatcher = dispatcher
        self._flags = flags
        self._mark: ReplicaMark | None = None
        self.check = ReplicaCheck(parts)
        self.mastership: Mastership = parts.mastership
        self.group: GroupFile = parts.group
        self._source = 0
        """Epoch of the master whose bytes come; 0 is one that did not introduce itself."""
        self.master_address = ""
        """Where clients find the master, as the replicator said last; empty: nobody knows."""
        self._apply_role()

    # -- following --------------------------------------------------------------------------------------------------

    def follow(self, epoch: int) -> None:
        """Bytes of a master of ``epoch`` are about to come, from the end of the log on; 0 is one without epochs.

        Raises:
            WrongRole: this is a master, or one that has seen a newer master. OSError: the disk refused.
        """
        self.drop_unchecked()
        self.check.begin()
        self.mastership.follow(epoch, self._log.max_offset)
        self._parts.damage.forget_from(self._log.max_offset)
        if epoch != self._source:
            self.check.refused = None  # those were another master's bytes: this one may never have any there
        self._source = epoch

    def remember(self, group: ReplicaGroup) -> None:
        """Note on disk what a master told of its group.

        Raises:
            WrongRole: this node knows of a newer master than the group's. OSError: nothing has changed.
        """
        if group.epoch < self.mastership.newest_known:
            raise WrongRole(
                f"The group is one of epoch {group.epoch}, but this store knows of epoch "
                f"{self.mastership.newest_known}."
            )
        self.group.remember(group)

    def append(self, offset: int, *pieces: memoryview) -> None:
        """Take bytes of the master's log that begin at ``offset``, which must be where the last ones ended.

        An empty log takes the start of any file for its own beginning.

        Raises:
            WrongRole: this is no slave, or has promised to follow no master that old.
            ForkedLog: the bytes do not continue the log; none was taken.
            CorruptReplica: they are no right records; what is right before them was taken, they were not.
            DiskFull, NotWritable: the store cannot take them at present, or as its disk failed, never again.
        """
        self.mastership.check_source(self._source)
        for reason in _FATAL:
            if self._flags.holds(reason):
                raise NotWritable(f"No replica bytes are taken: {self._flags.why}.")
        if offset != self._log.written_offset:
            self._begin_at(offset)
        if self._mark is None:
            self._mark = ReplicaMark(self._parts.config.store_path_root_dir, self._parts.disk, self._parts.boot)
        try:
            for piece in pieces:
                self._write(piece, self._mark)
            self._accept(self._mark)
        except CorruptReplica as error:
            log.error("%s", error)
            self._log.accept(error.whole, self._mark)
            self._log.drop_unchecked(self._mark)
            raise
        except DiskFull as error:
            if self._flags.set(Reason.LOG_DISK_FULL, error.message.rstrip(".")):
                log.error("No more replica bytes are taken: %s", error)
            raise
        except OSError as error:  # the mark stands: the next start zeroes what is half written
            self._flags.set(Reason.FLUSH_FAILED, f"the disk failed to take replica bytes: {error}")
            log.critical("No more replica bytes are taken, the disk failed: %s", error)
            raise disk_error(error, "Replica bytes cannot be written") from error
        self._flags.clear(Reason.LOG_DISK_FULL)
        self._parts.confirmed.show_all()  # a master has gone on where this log ended: all of it is that master's too

    def _write(self, piece: memoryview, mark: ReplicaMark) -> None:
        """Write a piece after the others. A file is complete, and checked to its end, before the next one begins."""
        while piece:
            taken = self._log.append_bytes(piece, mark)
            if not taken:
                self._accept(mark)
            piece = piece[taken:]

    def _accept(self, mark: ReplicaMark) -> None:
        """Let whole, right records belong to the log. Raises CorruptReplica."""
        file, begin, end = self._log.unchecked
        whole = self.check.whole(file, begin, end)
        if whole > begin:
            self._log.accept(whole, mark)

    def drop_unchecked(self) -> int:
        """Forget the bytes after the last whole record: their rest will not come. Gives how many they were.

        Where the disk failed in the middle of them they stay marked, for the next start to zero.
        """
        if self._mark is None or self._flags.holds(Reason.FLUSH_FAILED):
            return 0
        return self._log.drop_unchecked(self._mark)

    def _begin_at(self, offset: int) -> None:
        """Begin an empty log at the start of a file; refuse everything else."""
        begin, end = self._log.min_offset, self._log.written_offset
        size = self._parts.config.mapped_file_size_commit_log
        if begin != end or self._parts.queues.bounds():
            raise ForkedLog(
                f"This log ends at offset {end:,}, but the bytes that came begin at {offset:,}.",
                remedy="The replicator asks its master again from the right place.",
            )
        if offset % size:
            raise ForkedLog(
                f"This log is empty and can begin at a multiple of {size:,} only, not at {offset:,}.",
                remedy="mappedFileSizeCommitLog must be the master's.",
            )
        self._log.start_at(offset)
        self._flush.begin_at(offset)
        self._dispatcher.begin_at(offset)

    def confirm(self, offset: int) -> None:
        """As many nodes as a send waits for have everything below ``offset``, on a synchronous master."""
        self._parts.confirmed.raise_to(min(offset, self._log.max_offset))

    # -- roles ------------------------------------------------------------------------------------------------------

    async def promote(self, role: BrokerRole, epoch: int) -> None:
        """Become a master: half a record is forgotten, queues and index are finished, then messages are taken.

        Raises:
            WrongRole: see `Mastership.promote`; or this is a master already and not fenced.
            NotWritable: queues or index cannot be written; the store stays a slave.
        """
        await self._flush.flush_all()
        self._dispatcher.catch_up_all()
        if self._flags.holds(Reason.QUEUE_ERROR) or self._flags.holds(Reason.FLUSH_FAILED):
            raise NotWritable(f"This store cannot become a master: {self._flags.why}.")
        self.drop_unchecked()
        self.mastership.promote(role, epoch, self._log.max_offset)
        # No node has more, or somebody has accepted the loss: what is here is what its numbers stand for from now on.
        # A start that finds no mark yet comes to the same, as no message has been taken since.
        self._parts.confirmed.begin(role, self._log.max_offset)
        self._parts.checkpoint.write_mark()
        self._log.last_store_timestamp = max(self._log.last_store_timestamp, self._dispatcher.last_store_timestamp)
        self._apply_role()
        log.warning("This store is %s from log offset %d on, epoch %d", role, self._log.max_offset, self.epoch)

    def demote(self, epoch: int) -> None:
        """Become a slave. Raises WrongRole, OSError."""
        self.mastership.demote(epoch)
        self._apply_role()
        log.warning("This store is a slave from here on")

    def fence(self, epoch: int, store_id: str = "", address: str = "") -> None:
        """There is a master of ``epoch``, or a node that wants to be it: nothing of or for an older one is taken.

        Raises OSError.
        """
        if not self.mastership.fence(epoch, store_id, address):
            return
        self._apply_role()
        if self.mastership.is_slave:
            log.warning("No master with an epoch below %d is followed any more", epoch)
        else:
            log.error("No more messages are taken: a newer master was promoted, with epoch %d", epoch)

    @property
    def elsewhere(self) -> str | None:
        """Where clients find the master, if it is not this store; empty: nobody knows. None: this one is it."""
        mastership = self.mastership
        return self.master_address if mastership.is_slave or mastership.fenced_by else None

    @property
    def epoch(self) -> int:
        """The present epoch."""
        return self.mastership.epoch

    def _apply_role(self) -> None:
        """Let flags and dispatch be those of the role."""
        mastership, flags = self.mastership, self._flags
        if mastership.is_slave:
            flags.set(Reason.SLAVE, "this store is a slave; send to its master")
        else:
            flags.clear(Reason.SLAVE)
        if mastership.fenced_by and not mastership.is_slave:
            flags.set(
                Reason.FENCED,
                f"a newer master was promoted (epoch {mastership.fenced_by}; this one has {mastership.epoch}); "
                "make this store its slave (tandem replica follow)",
            )
        else:
            flags.clear(Reason.FENCED)
        self._dispatcher.follow(mastership.is_slave)

    def close(self, *, clean: bool) -> None:
        """Let go of the mark; ``clean``: it is worth nothing any more. Raises OSError."""
        if self._mark is not None:
            self._mark.close(clean=clean)
