"""Putting together what the ranges of a log have found: one log, one story for each queue.

Nothing here reads more than a few records. The rules are the store's: rot where valid records follow, the end of the
log where none do (`LogScan`), and of a queue's offsets those that its consume queue would have taken one after the
other (`ConsumeQueue.append_run`).
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby

from tandemmq.spark.reading.ranges import LogRange
from tandemmq.spark.reading.walking import Damage, RangeResult, RangeWalker
from tandemmq.spark.rebuilding.queue_writer import Interval, QueueKey

Found = tuple[LogRange, RangeResult]


@dataclass(slots=True)
class LogFindings:
    """What a log is, seen as a whole.

    ``end``: log offset after its last record. ``misread``: starts of files where a range began with bytes that only
    look like a record (a record in a body, or one that was cut off): they have to be walked from their beginning.
    """

    begin: int
    end: int
    records: int = 0
    max_store_timestamp: int = 0
    damage: list[Damage] = field(default_factory=list)
    misread: set[int] = field(default_factory=set)


def settle(found: Sequence[Found], *, check_crc: bool = True) -> LogFindings:
    """Check that the ranges of a log, given in its order, join; tell rot from the end of the log."""
    log = LogFindings(found[0][0].begin, found[0][0].begin) if found else LogFindings(0, 0)
    torn: Damage | None = None  # nothing valid follows in its file; a later file decides
    expected = log.begin
    for file, of_file in groupby(found, key=lambda one: one[0].file):
        ranges = list(of_file)
        records = sum(result.records for _, result in ranges)
        begin = ranges[0][0].begin
        if records and torn is not None:
            log.damage.append(Damage(torn.begin, begin, "rot", torn.reason))
            torn = None
        elif begin > expected and torn is None:
            log.damage.append(Damage(expected, begin, "missing", "a commit log file is missing"))
        log.records += records
        end, tail = _join(ranges, log, check_crc)
        if torn is None:
            torn, log.end = tail, end if tail is None else tail.begin
        expected = file.end
        log.max_store_timestamp = max(log.max_store_timestamp, *(result.max_store_timestamp for _, result in ranges))
    if torn is not None and torn.end > torn.begin:
        log.damage.append(torn)
    return log


def _join(ranges: Sequence[Found], log: LogFindings, check_crc: bool) -> tuple[int, Damage | None]:
    """Follow the ranges of one file; gives where it ends, and what is torn at its end if anything is."""
    cursor, torn = ranges[0][0].begin, None
    for log_range, result in ranges:
        if torn is not None or cursor >= log_range.end:
            if result.records:
                log.misread.add(log_range.file.start)
            continue
        if result.first != cursor:
            if 0 <= result.first < cursor:
                log.misread.add(log_range.file.start)
                continue
            between = _look(log_range, cursor, result.first if result.first > cursor else log_range.end, check_crc)
            if between.records or (result.first >= 0 and between.next != result.first):
                log.misread.add(log_range.file.start)  # its first record lies in another, or after the file's blank
            log.damage += between.damage
            if result.first < 0:
                cursor, torn = _after(between, cursor)
                continue
        log.damage += result.damage
        cursor, torn = _after(result, cursor)
    return cursor, torn


def _look(log_range: LogRange, begin: int, end: int, check_crc: bool) -> RangeResult:
    """Walk from where a record has ended to where the next range has found one."""
    with RangeWalker(LogRange(-1, log_range.file, begin, end, exact=True), check_crc=check_crc) as walking:
        for _ in walking.walks():
            pass
        return walking.result


def _after(result: RangeResult, cursor: int) -> tuple[int, Damage | None]:
    if result.torn_at >= 0:
        return result.torn_at, Damage(result.torn_at, max(result.torn_end, result.torn_at), "torn", result.torn_reason)
    return max(result.next, cursor), None


@dataclass(slots=True)
class QueuePlan:
    """One queue of a rebuild: queue offsets [first, end), what fills them, and what does not.

    ``accepted``: the offsets that messages have. ``blanks``: stretches that blank units fill. ``irregular``: some of
    what the log holds for this queue is not accepted, as the number was taken.
    """

    first: int = 0
    end: int = 0
    accepted: list[Interval] = field(default_factory=list)
    blanks: list[tuple[int, int]] = field(default_factory=list)
    irregular: bool = False

    @property
    def units(self) -> int:
        """Messages in the queue."""
        return sum(interval.end - interval.first for interval in self.accepted)

    def last_is_misnumbered(self, first: int) -> bool:
        """Whether the last record stands alone after a gap, and the next one goes on in that, at ``first``.

        Numbers only rise, and no checksum covers them: see `ConsumeQueue.take_back`.
        """
        last, gap = self.accepted[-1], self.blanks[-1] if self.blanks else (0, 0)
        if last.end != last.first + 1 or (len(self.accepted) > 1 and gap[1] != last.first):
            return False
        return first <= last.first and (len(self.accepted) == 1 or gap[0] <= first)

    def take_back(self) -> None:
        """Leave out the last record."""
        last = self.accepted.pop()
        if self.blanks and self.blanks[-1][1] == last.first:
            self.blanks.pop()
        self.end = self.accepted[-1].end if self.accepted else 0
        self.irregular = True


def accept(intervals: Iterable[Interval], units_per_file: int) -> QueuePlan:
    """What a consume queue takes of these, one after the other in the order of the log."""
    plan = QueuePlan()
    for come in intervals:
        if come.first < plan.end and plan.last_is_misnumbered(come.first):
            plan.take_back()
        if come.end <= plan.end:
            plan.irregular = True
            continue
        first = come.first
        if first < plan.end:
            plan.irregular = True
            first = plan.end
        if not plan.accepted:
            plan.first = first
            blank = first - first % units_per_file
        else:
            blank = plan.end
        if blank < first:
            plan.blanks.append((blank, first))
        plan.accepted.append(come._replace(first=first))
        plan.end = come.end
    return plan


def accept_all(
    found: Iterable[Mapping[QueueKey, Sequence[Interval]]], units_per_file: int
) -> dict[QueueKey, QueuePlan]:
    """`accept` for all queues of a log; ``found``: what each range has, in the order of the log."""
    together: dict[QueueKey, list[Interval]] = {}
    for of_range in found:
        for key, intervals in of_range.items():
            known = together.setdefault(key, [])
            known += intervals
    plans = {key: accept(_merged(intervals), units_per_file) for key, intervals in together.items()}
    return {key: plan for key, plan in plans.items() if plan.accepted}


def _merged(intervals: Iterable[Interval]) -> Iterator[Interval]:
    """Neighbours in one piece."""
    last: Interval | None = None
    for interval in intervals:
        if last is not None and last.end == interval.first:
            last = last._replace(end=interval.end, physical_end=interval.physical_end)
            continue
        if last is not None:
            yield last
        last = interval
    if last is not None:
        yield last
