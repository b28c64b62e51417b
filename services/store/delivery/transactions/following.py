"""From the two topics to the state: all of it when a mastership begins, and new half messages from then on."""

from collections.abc import Callable
from pathlib import Path

from tandemmq.common import java_json
from tandemmq.common.log_output import get_log
from tandemmq.store.broker.preparing import HALF_QUEUE, HALF_TOPIC
from tandemmq.store.delivery.facts import Moved, Place
from tandemmq.store.delivery.journal import Journal
from tandemmq.store.delivery.transactions.half_log import HalfLog
from tandemmq.store.delivery.transactions.half_message import OP_QUEUE, OP_TOPIC, TRANSACTION_GROUP, read_half, read_op
from tandemmq.store.delivery.transactions.halves import Halves, PendingTransaction
from tandemmq.store.format.record import Record
from tandemmq.store.log.edges.slices import Slices

log = get_log(__name__)

HALF_PLACE = Place(TRANSACTION_GROUP, HALF_TOPIC, HALF_QUEUE)
OP_PLACE = Place(TRANSACTION_GROUP, OP_TOPIC, OP_QUEUE)
_OPS_BEFORE = 10_000
"""So many op records before those that are needed are read too: a repeated ending is recognized after a restart."""


def position_of_java(root: Path, place: Place) -> int:
    """Where a Java broker stood, by `config/consumerOffset.json`; 0 where that says nothing that can be read."""
    try:
        table = java_json.loads((root / "config" / "consumerOffset.json").read_bytes())["offsetTable"]
        position = table[f"{place.topic}@{place.group}"][str(place.queue)]
    except (OSError, ValueError, LookupError, TypeError):
        return 0
    return position if type(position) is int else 0


class HalfFollowing:
    """Reads half messages, and keeps the positions of the group `CID_RMQ_SYS_TRANS`."""

    def __init__(self, half_log: HalfLog, journal: Journal, began: Callable[[PendingTransaction], None]) -> None:
        """`began` hears of every transaction that is pending, and again when a record of it is found."""
        self._log = half_log
        self._journal = journal
        self._began = began
        self._queue = half_log.store.ensure_queue(HALF_TOPIC, HALF_QUEUE)
        self._seen = 0

    async def build(self) -> None:
        """Read ops, then half messages, from the saved positions on; others have their turn in between."""
        slices = Slices()
        half_first, half_end = self._begin(HALF_PLACE)
        op_first, op_end = self._begin(OP_PLACE)
        op_first = max(min(op_first, op_end - _OPS_BEFORE), self._log.bounds(OP_TOPIC)[0])
        halves = self._log.halves = Halves(half_first, op_first)
        self._log.end_offset = self._log.store.commit_log.max_offset
        for _, record in self._log.records(OP_TOPIC, op_first, op_end):
            if record is not None:
                halves.closed(read_op(record))
            await slices.pause()
        self._seen = half_first
        while self._seen < half_end:
            for offset, record in self._log.records(HALF_TOPIC, self._seen, half_end):
                self._find(offset, record)
                await slices.pause()
            self._seen, half_end = half_end, self._log.bounds(HALF_TOPIC)[1]
        halves.all_read()
        for pending in halves:
            self._began(pending)
        log.info("half messages are known", pending=len(halves), read=half_end - half_first, ops=op_end - op_first)

    def _begin(self, place: Place) -> tuple[int, int]:
        """Where to read from, and the queue's end. A position beyond the end is put right, or messages were passed."""
        first, end = self._log.bounds(place.topic)
        known = self._journal.ledger.progress(place)
        if known is None:
            return min(max(position_of_java(self._log.store.config.store_path_root_dir, place), first), end), end
        if known.cursor < first:
            return first, end
        if known.cursor > end:
            log.error(
                "a position of transactions lies beyond the queue", topic=place.topic, saved=known.cursor, end=end
            )
            self._journal.note(Moved(place, end, known.resets + 1))
            return end, end
        return known.cursor, end

    def follow(self) -> None:
        """Take in the half messages that have been dispatched since."""
        end = self._queue.max_offset
        if end <= self._seen:
            return
        first, self._seen = self._seen, end
        for offset, record in self._log.records(HALF_TOPIC, first, end):
            pending = self._find(offset, record)
            if pending is not None:
                self._began(pending)

    def _find(self, offset: int, record: Record | None) -> PendingTransaction | None:
        half = None if record is None else read_half(record)
        if half is None or not half.topic:
            log.error("a half message cannot be read, and is passed", queue_offset=offset)
            self._log.halves.passed(offset + 1)
            return None
        return self._log.halves.found(half)

    def save(self) -> None:
        """Note how far both topics are dealt with, where that has changed. Raises NotDelivering."""
        halves = self._log.halves
        for place, offset in ((HALF_PLACE, halves.half_offset), (OP_PLACE, halves.op_offset)):
            known = self._journal.ledger.progress(place)
            if offset > (0 if known is None else known.cursor):  # a store without transactions notes nothing
                self._journal.note(Moved(place, offset, 0 if known is None else known.resets))
