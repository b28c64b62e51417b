"""Consume queues at start-up: where each ends, which ones lost something, and what the next offsets are."""

from collections.abc import Callable, Iterable, Mapping

from tandemmq.store.format.record import Record
from tandemmq.store.format.sysflag import is_indexed_in_queue
from tandemmq.store.format.unit import UNIT_SIZE, is_blank, is_empty
from tandemmq.store.format.walker import UnitRun
from tandemmq.store.log.marks.manifest import Manifest
from tandemmq.store.log.parts import StoreParts
from tandemmq.store.log.queues.consume_queue import ConsumeQueue
from tandemmq.store.log.queues.consume_queue_store import Bounds, ConsumeQueueStore
from tandemmq.store.log.queues.queue_offsets import NextOffsets, QueueKey
from tandemmq.store.log.recovery.damage import DamageList

# RecordFits(topic, queue id, queue offset, physical offset)
RecordFits = Callable[[str, int, int, int], bool]
_STALE_UNITS_MAX = 10_000  # so many units are stepped back over before a queue counts as lost


class QueueRecovery:
    """Brings the queues in line with the log.

    ``manifest`` is None where none is current: then nothing untouched is certain.
    """

    def __init__(self, queues: ConsumeQueueStore, offsets: NextOffsets, manifest: Manifest | None) -> None:
        """Work on ``queues`` and ``offsets``."""
        self._queues = queues
        self._offsets = offsets
        self._manifest = manifest
        self._touched: set[QueueKey] = set()
        self._begins: dict[QueueKey, int] = {}
        """Where queues began that lack their first files."""

    def prepare(self, begin: int, record_fits: RecordFits) -> None:
        """Find the queues, and their ends as of log offset ``begin``, from which the walk will go on.

        Where a manifest is current, what it knows stays unopened. Raises as `ConsumeQueueStore.load`.
        """
        self._begin, self._record_fits = begin, record_fits
        known = self._manifest.queues if self._manifest is not None else {}
        self._queues.load({} if self._manifest is None or self._manifest.rebuilding else known)
        for queue in self._queues.opened:
            self.find_end(queue)
        for key in known.keys() - self._queues.names():
            self.find_end(self._queues.ensure(*key))

    def find_end(self, queue: ConsumeQueue) -> None:
        """Give a queue its end as of where the walk begins, or began; see whether it has lost some of its files."""
        manifest = self._manifest
        bounds = manifest.queues.get((queue.topic, queue.queue_id)) if manifest is not None else None
        if bounds is not None and self._agrees(queue, bounds):
            queue.min_offset = bounds[0]
            queue.end_at(bounds[1])
        else:
            queue.recover_end(self._begin)
            self._drop_stale_units(queue)
            if bounds is not None or queue.has_missing_file:
                queue.rebuilding = True
        if bounds is not None and manifest is not None and (queue.rebuilding or manifest.rebuilding):
            queue.rebuilding = True
            queue.max_offset = max(queue.max_offset, bounds[1])
            queue.last_end = self._begin  # whatever its units say: the manifest knows no record after that

    def _agrees(self, queue: ConsumeQueue, bounds: Bounds) -> bool:
        """Whether the queue's files are all there, up to the last unit that the manifest knows of.

        That is never a blank: one stands there where a lost queue was gone on with, and not restored yet. Nor does it
        name what lies after the records that the manifest knows: such a unit is damaged.
        """
        first, end = bounds
        if first == end and not queue.files:
            return True  # all of its messages have expired: nothing is lost
        if queue.has_missing_file or (first < end and first < queue.first_offset_on_disk):
            return False
        if end <= queue.first_offset_on_disk:
            return end == 0 or end == queue.first_offset_on_disk
        unit = queue.unit(end - 1)
        return (
            unit is not None
            and unit.size > 0
            and not is_blank(unit)
            and unit.physical_offset >= 0
            and unit.end <= self._begin
        )

    def _drop_stale_units(self, queue: ConsumeQueue) -> None:
        """Step back over units that RocketMQ left behind when it cut the log: they point at other records (trap T1)."""
        for _ in range(_STALE_UNITS_MAX):
            offset = queue.max_offset - 1
            unit = queue.unit(offset) if offset >= queue.first_offset_on_disk and queue.max_offset else None
            if unit is None or is_blank(unit):
                return
            if self._record_fits(queue.topic, queue.queue_id, offset, unit.physical_offset):
                return
            queue.end_at(offset)
        queue.rebuilding = True

    def take(self, runs: Iterable[UnitRun], damage: DamageList) -> None:
        """Add the units of records after the starting point.

        A gap before them, or a queue that begins after them, tells that the queue has lost some.

        Units of damaged records are left as they are. A blank in their place would do for us, but RocketMQ, which
        cuts the log at the damage, would take it for the queue's end and drop what follows (trap T5).
        """
        for one in self._queues.nameable(runs):
            run = one.possible()
            if run is None:
                continue
            first = run.first_queue_offset
            queue = self._queues.ensure(run.topic, run.queue_id)
            key = (run.topic, run.queue_id)
            queue.take_back(first, run.first_physical)
            _count_on(queue, damage, first)
            if first > queue.max_offset and key not in self._touched:
                queue.rebuilding = True
            self._touched.add(key)
            begins = self._begins.get(key, queue.first_offset_on_disk)
            lost = min(begins - first, run.count)
            if lost > 0:  # files go after their records: the first ones are lost, with what they had before these
                self._begins[key] = begins
                queue.rebuilding = True
                queue.put(first, run.units[: lost * UNIT_SIZE])
                queue.min_offset = min(queue.min_offset, first)
            queue.append_run(first, run.units, run.last_end_physical)

    def keep_numbers_of_damaged(self, damage: DamageList) -> None:
        """Let a queue count on after units whose records lie in damaged stretches.

        Those offsets were given away once.
        """
        for queue in self._queues:
            _count_on(queue, damage)

    def finish(self, log_min: int, given: Mapping[QueueKey, Bounds], *, whole_log: bool, ours: bool) -> None:
        """Publish the next offset of every queue that is certain, and the first readable offsets.

        ``whole_log``: the walk has seen every record there is, so nothing can be missing. A queue of which nothing is
        left ends where it had come once, as ``given`` says, though another broker may have had the directory since:
        else one that was lost after its messages had expired would begin anew. So does every queue where the log is
        ``ours`` since ``given`` was noted: the record with its last number may be damaged. Of others their messages
        tell: another broker may have cut the log, and gives those numbers again.
        """
        certain = whole_log or self._manifest is not None
        self._offsets.update((key, end) for key, (_, end) in self._queues.bounds().items())
        for key in given.keys() - self._queues.names():
            self._queues.ensure(*key)
        for queue in self._queues.opened:
            key = (queue.topic, queue.queue_id)
            queue.correct_min_offset(log_min)
            if ours or not queue.files:
                queue.end_not_before(given.get(key, (0, 0))[1])
            if certain or key in self._touched:
                self._offsets.raise_to(key, queue.max_offset)
            else:
                self._offsets.doubt(key)
        self._offsets.all_known = certain
        self._touched.clear()
        self._begins.clear()


def has_units_behind(queue: ConsumeQueue, log_end: int) -> bool:
    """Whether a unit is left after the queue's end whose record would lie after the end of the log."""
    unit = queue.unit(queue.max_offset)
    if unit is None or is_empty(unit) or is_blank(unit):
        return False
    return unit.physical_offset >= log_end


def keep_changed(parts: StoreParts, queue: ConsumeQueue, begin: int, end: int) -> None:
    """Let a queue count on after units whose records, in ``[begin, end)`` of the log, say that they are not in it.

    A bit has changed that no checksum covers; that is told. The number was given away once, so it is not given again,
    and the unit stays: readers find that its message is not in the log.
    """
    while (record := _changed_record(parts, queue, begin, end)) is not None:
        queue.tell_changed(queue.max_offset, record)
        queue.end_at(queue.max_offset + 1)


def _changed_record(parts: StoreParts, queue: ConsumeQueue, begin: int, end: int) -> Record | None:
    """The record that the first unit after the queue's end points at, if it is whole and one field takes it elsewhere.

    Size and number must be those of the unit: where a log was cut, another record may stand in the old one's place.
    """
    number = queue.max_offset
    unit = queue.unit(number)
    if unit is None or is_blank(unit) or is_empty(unit) or not begin <= unit.physical_offset <= end - unit.size:
        return None
    place = unit.physical_offset
    record = None if parts.damage.covering(place) is not None else parts.records.decoded(place, verify=True)
    if record is None or (record.physical_offset, record.size, record.queue_offset) != (place, unit.size, number):
        return None
    wrong = (record.topic != queue.topic) + (record.queue_id != queue.queue_id)
    return record if wrong + (not is_indexed_in_queue(record.sys_flag)) == 1 else None


def _count_on(queue: ConsumeQueue, damage: DamageList, limit: int | None = None) -> None:
    """Move the end of the queue past units whose records lie in damaged stretches, up to offset ``limit``."""
    while limit is None or queue.max_offset < limit:
        unit = queue.unit(queue.max_offset)
        if unit is None or is_empty(unit) or is_blank(unit) or damage.covering(unit.physical_offset) is None:
            return
        queue.end_at(queue.max_offset + 1)
