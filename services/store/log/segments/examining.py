"""Looking at a stretch of the log again: whether all of it is whole records with right checksums, and which they are.

Runs in a thread; changes nothing.
"""

from dataclasses import dataclass, field

from isal.isal_zlib import crc32

from tandemmq.store.format.walker import WalkRow
from tandemmq.store.log.parts import StoreParts
from tandemmq.store.log.recovery.damage import DamagedRange, KnownDamage, NoDamage
from tandemmq.store.log.segments.scan import LogScan, Step

_ROWS = 8_192
"""Of one step: they are looked at one by one where the caller wants to hear of them."""


@dataclass(slots=True)
class Examined:
    """What was found: good from ``begin`` to ``good_until``, which is the end that was asked for, or ``damage``."""

    begin: int
    good_until: int
    damage: DamagedRange | None = None
    records: list[tuple[WalkRow, int]] = field(default_factory=list)
    """The records that were asked for, each with the CRC-32 of all its bytes."""


def examine(
    parts: StoreParts, begin: int, end: int, *, limit: int = 0, seek: bool = False, fresh: bool = False, most: int = 0
) -> Examined:
    """Walk ``[begin, end)``; ``begin`` is where a record begins, or with ``seek`` anywhere.

    A stretch that is known as damaged counts as such, whatever is in it, unless ``fresh`` asks for a new look. A record
    that ``end`` lies in is looked at too, and told of, as far as ``limit``; it does not count for ``good_until``.
    """
    if seek:
        begin, _ = _record_at(parts, begin)
    found = Examined(begin, begin)
    damage = NoDamage() if fresh else parts.damage
    for step in _scan(parts, end - begin, damage, check_crc=True).steps(begin, end):
        _take(parts, step, found, most)
        if found.damage is not None:
            return found
    if found.good_until < end < limit:
        rest = Examined(found.good_until, found.good_until)
        scan = _scan(parts, 0, damage, check_crc=True, rows=1)
        _take(parts, scan.step(found.good_until, limit), rest, most - len(found.records))
        found.damage = rest.damage
        found.records += rest.records
    return found


def _take(parts: StoreParts, step: Step, found: Examined, most: int) -> None:
    """Add what a step has met."""
    walk, file = step.walk, step.file
    if walk is not None and file is not None:
        if len(found.records) < most:
            found.records += [(row, _checksum(parts, row)) for row in walk.rows()[: most - len(found.records)]]
        found.good_until = file.start + walk.position
    if step.damage is not None:
        found.damage = step.damage
    elif step.torn_at >= 0:
        found.damage = DamagedRange(step.torn_at, step.torn_at, "torn", "no record stands there, and none follows")
    elif walk is not None:
        found.good_until = step.position
    elif not step.finished:
        at = found.good_until
        expired = DamagedRange(at, step.position, "missing", "the log has expired there")
        found.damage = parts.damage.covering(at) or expired


def within_record(parts: StoreParts, offset: int) -> bool:
    """Whether a record holds ``offset`` and begins before it; walks its file from the beginning."""
    return _record_at(parts, offset)[1]


def _record_at(parts: StoreParts, offset: int) -> tuple[int, bool]:
    """Where the record begins that holds ``offset``, or a bad place that does; and whether a record begins before."""
    file = parts.files.find(offset)
    if file is None:
        return offset, False
    position = file.start
    scan = _scan(parts, offset - file.start, NoDamage(), check_crc=False)
    for step in scan.steps(file.start, file.end):
        for row in step.walk.rows() if step.walk is not None and step.position > offset else ():
            if row.position <= offset < row.position + row.size:
                return row.position, row.position < offset
        if step.damage is not None and step.damage.begin <= offset < step.damage.end:
            return step.damage.begin, False
        if step.position > offset or step.torn_at >= 0 or step.finished:
            break
        position = step.position
    return position, False


def _scan(parts: StoreParts, amount: int, damage: KnownDamage, *, check_crc: bool, rows: int = _ROWS) -> LogScan:
    return LogScan(
        parts.files,
        parts.walkers.for_bytes(amount),
        damage,
        check_crc=check_crc,
        delay_levels=(),
        rows=rows,
        half_at_end=True,
    )


def _checksum(parts: StoreParts, row: WalkRow) -> int:
    file = parts.files.find(row.position)
    return 0 if file is None else crc32(file.map[row.position - file.start : row.position - file.start + row.size])
