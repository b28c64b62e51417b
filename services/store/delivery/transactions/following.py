"""From the two topics to the state: all of it when a mastership begins, and new half messages from then on."""

import sys
from collections.abc import Callable

from tandemmq.common.log_output import get_log
from tandemmq.common.slices import Slices, each
from tandemmq.common.timers import my_turn
from tandemmq.store.delivery.transactions.half_log import HalfLog, TopicPlace
from tandemmq.store.delivery.transactions.half_message import read_half, read_op
from tandemmq.store.delivery.transactions.halves import Halves, PendingTransaction
from tandemmq.store.format.record import Record
from tandemmq.store.log.errors import StoreError

log = get_log(__name__)

_OPS_BEFORE = 10_000
"""So many op records before those that are needed are read too: a repeated ending is recognized after a restart."""
_TURN_SECONDS = 0.001
_RETRY_SECONDS = 0.1


class HalfFollowing:
    """Reads half messages, and keeps the positions of the group `CID_RMQ_SYS_TRANS`."""

    def __init__(self, half_log: HalfLog, began: Callable[[PendingTransaction], None]) -> None:
        """`began` hears of every transaction that is pending, and again when a record of it is found."""
        self._log = half_log
        self._half, self._ops = half_log.half_topic, half_log.op_topic
        self._began = began
        self._taking = False

    async def build(self) -> None:
        """Read ops, then half messages, from the saved positions on; others have their turn in between.

        What comes meanwhile is left to `follow`. Raises NotDelivering.
        """
        for step in (self._begin, self._read_ops, self._read_halves):
            await self._all_of(step)
        halves = self._log.halves
        halves.all_read()
        await each(self._began, list(halves), Slices(self._log.store.timers))
        await self._all_of(self._read_new)
        log.info("half messages are known", pending=len(halves))

    async def _all_of(self, step: Callable[[], bool]) -> None:
        """Take steps until one says that there are no more; where a queue is being put right, after a while."""
        more, told = True, False
        while more:
            pause = 0.0
            try:
                more = step()
            except (StoreError, OSError) as error:
                if not told:
                    log.warning("half messages wait to be read", reason=str(error))
                told, pause = True, _RETRY_SECONDS
            if pause:
                await self._log.store.timers.sleep(pause)
            elif more:
                await my_turn(self._log.store.timers)

    def _begin(self) -> bool:
        """Stand where the positions say: those of a Java broker are among what its file of offsets said; one step."""
        for topic in (self._half, self._ops):
            topic.cursor.begin()
            topic.cursor.forget()  # units that were read before this store was a slave
            topic.cursor.settle()
        half, ops = self._half.cursor, self._ops.cursor
        ops.begin(max(min(ops.next, ops.queue.max_offset - _OPS_BEFORE), ops.queue.min_offset))
        self._log.halves = Halves(half.next, ops.next)
        self._log.end_offset = self._log.store.commit_log.max_offset
        return False

    def _read_ops(self) -> bool:
        return self._read(self._ops, self._close)

    def _read_halves(self) -> bool:
        return self._read(self._half, self._find)

    def _read_new(self) -> bool:
        """The half messages that came while those before them were read."""
        return self._read(self._half, self._find_new)

    def _read(self, topic: TopicPlace, take: Callable[[int, Record | None], object]) -> bool:
        """Read some of a topic; whether there is more. What the replicas do not have yet may be ended all the same."""
        cursor = topic.cursor
        cursor.pass_expired()  # since the step before
        end, until = cursor.queue.max_offset, self._log.store.timers.elapsed() + _TURN_SECONDS
        for unit in cursor.units(end, sys.maxsize, until):
            take(cursor.next, cursor.record(unit))
        return cursor.next < end

    def _close(self, _: int, record: Record | None) -> None:
        if record is not None:
            self._log.halves.closed(read_op(record))

    def may_find(self, queue_offset: int) -> bool:
        """Whether the half message of this offset (any, where that is negative) may be among those still to be read."""
        cursor = self._half.cursor
        return cursor.next < cursor.dispatched.max_offset and not 0 <= queue_offset < cursor.next

    def follow(self) -> None:
        """Take in the half messages that were dispatched since; what cannot be read now is read at a later call."""
        cursor = self._half.cursor
        end = cursor.dispatched.max_offset
        if end <= cursor.next or self._taking:
            return
        self._taking = True
        try:
            if cursor.next < cursor.dispatched.min_offset:
                cursor.pass_expired()
            for unit in cursor.units(end, sys.maxsize):
                self._find_new(cursor.next, cursor.record(unit))
        except (StoreError, OSError) as error:
            log.debug("half messages wait to be read", reason=str(error))
        finally:
            self._taking = False

    def _find(self, offset: int, record: Record | None) -> PendingTransaction | None:
        half = None if record is None else read_half(record)
        if half is None or not half.topic:
            log.error("a half message cannot be read, and is passed", queue_offset=offset)
            self._log.halves.passed(offset + 1)
            return None
        return self._log.halves.found(half)

    def _find_new(self, offset: int, record: Record | None) -> None:
        pending = self._find(offset, record)
        if pending is not None:
            self._began(pending)

    def save(self) -> None:
        """Note how far both topics are dealt with, where that has changed. Raises NotDelivering."""
        halves = self._log.halves
        self._half.position.keep(halves.half_offset)
        self._ops.position.keep(halves.op_offset)
