"""What a slave takes of its master's log: whole records that are right; and what it does about others.

Bytes that fail may have been changed on their way, so they are refused, and fetched again. Or the master's own log is
damaged there. Then they come every time, and the slave must go on after them as its master did. That takes a proof:
the replicator says that the very bytes that were refused, up to the next good record, are what the master has. It knows
from the master itself, or, where that is a RocketMQ that cannot be asked, from the same bytes having come on several
connections. They are kept as damage then: reported, read around.
"""

import logging
from typing import NamedTuple

from isal.isal_zlib import crc32

from tandemmq.store.format.arrival import Arrived, check_arrived
from tandemmq.store.format.record import meant_crc_property
from tandemmq.store.format.record_fields import PLACED_SIZE, size_at
from tandemmq.store.format.walker import CrcProperty, Stop
from tandemmq.store.log.errors import CorruptReplica
from tandemmq.store.log.parts import StoreParts
from tandemmq.store.log.recovery.damage import DamagedRange
from tandemmq.store.log.segments.commit_log import ENCODER_HEAD_ROOM
from tandemmq.store.log.segments.mapped_file import MappedFile

log = logging.getLogger(__name__)

_LONGEST_RECORD = 8 << 20


class RefusedBytes(NamedTuple):
    """Bytes of the master's log that were refused, and how often the very same came in a row."""

    offset: int
    size: int
    crc: int
    """CRC-32."""
    reason: str
    times: int = 1

    @property
    def which(self) -> tuple[int, int, int]:
        """Which bytes they are."""
        return self[:3]


class ReplicaCheck:
    """Checks what has arrived after the end of the log."""

    def __init__(self, parts: StoreParts) -> None:
        """Nothing was refused yet."""
        config = parts.config
        self._parts = parts
        self._largest = max(_LONGEST_RECORD, config.max_message_size + ENCODER_HEAD_ROOM)
        self._wants_crc = config.enabled_append_prop_crc or config.force_verify_prop_crc
        self._master_omits_crc = False
        """The master was proven to have a record without the whole-record checksum, and none with it came since."""
        self._searched = 0
        """Position up to which a file was searched for the end of what is proven in part."""
        self.refused: RefusedBytes | None = None
        """What was refused last; None when the log has got past it."""
        self.proven: tuple[int, int, int] | None = None
        """Offset, size and CRC-32 of bytes that are the master's own, right or not."""

    def begin(self, proven: tuple[int, int, int] | None = None) -> None:
        """A connection begins, perhaps with the proof that bytes which were refused are the master's own."""
        self.proven = proven
        self._searched = 0

    def whole(self, file: MappedFile, begin: int, end: int) -> int:
        """Check what lies in ``file`` from ``begin``, the end of the log, to ``end``; gives the new end of the log.

        Raises:
            CorruptReplica: what begins at its ``whole`` can be no record.
        """
        while True:
            found = self._check(file, begin, end)
            if self.refused is not None and file.start + found.whole > self.refused.offset:
                self.refused = None
                self.begin()
            if not found.problem:
                return found.whole
            sound = found.filler or self._is_sound(file, found)
            following = self._size_end(file, found) if sound else self._next_valid(file, found.whole, end)
            if not self._judge(file, found, following, end, sound=sound):
                return found.whole
            begin = following

    def _check(self, file: MappedFile, begin: int, end: int) -> Arrived:
        """Every record must have the whole-record checksum where ours have it, or its end may be another's.

        A master that writes none, or did not yet, is refused once and proven to have it so; its next ones pass.
        """
        if not self._wants_crc:
            return self._arrived(file, begin, end, CrcProperty.IGNORED)
        found = self._arrived(file, begin, end, CrcProperty.REQUIRED)
        if found.stop is Stop.BAD_CRC and self._master_omits_crc:
            return self._arrived(file, found.whole, end, CrcProperty.FITS_IF_THERE)
        if found.whole > begin:
            self._master_omits_crc = False
        return found

    def _arrived(self, file: MappedFile, begin: int, end: int, crc_property: CrcProperty) -> Arrived:
        return check_arrived(
            self._parts.walkers.best,
            file.map,
            begin,
            end,
            base=file.start,
            file_size=file.size,
            largest=self._largest,
            crc_property=crc_property,
        )

    def _next_valid(self, file: MappedFile, bad: int, end: int) -> int:
        """Where the next good record begins after ``bad``, or the file ends; -1 while it has not arrived."""
        begin = max(bad + 1, self._searched - self._largest)
        found = self._parts.walkers.best.resync(file.map, begin, end, file.start)
        return file.size if found < 0 and end == file.size else found

    def _is_sound(self, file: MappedFile, found: Arrived) -> bool:
        """Whether what failed is a record that readers take: it lacks only what is asked of it here beyond that."""
        stop = self._size_end(file, found)
        if found.stop is not Stop.BAD_CRC or not self._wants_crc:
            return False
        return self._parts.walkers.best.verify(file.map, found.whole, stop, file.start)[0] == stop

    @staticmethod
    def _size_end(file: MappedFile, found: Arrived) -> int:
        """Where the record or blank that failed ends, by its own size."""
        return found.whole + size_at(file.map, found.whole)

    def _judge(self, file: MappedFile, found: Arrived, following: int, end: int, *, sound: bool) -> bool:
        """Whether bad bytes are proven to be the master's own; False where more of them must come for that.

        Up to ``following``, or -1, they are noted as damage unless they are ``sound``. Raises CorruptReplica.
        """
        at = found.whole
        proven = self.proven
        if proven is not None and proven[0] == file.start + at:
            stop = following if following >= 0 else min(end, at + proven[1])
            if following >= 0 and self._bytes(file, at, stop) == proven:
                if not sound:
                    self._note(file, at, stop, found.problem)
                elif not found.filler:
                    with memoryview(file.map) as view, view[at:stop] as record:
                        self._master_omits_crc = not meant_crc_property(record)
                self.refused = None
                self.begin()
                return True
            if following < 0 and (stop - at < proven[1] or self._bytes(file, at, stop) == proven):
                self._searched = end
                return False
        if following < 0:  # where its length cannot be believed, its head shows what is wrong
            following = self._size_end(file, found) if found.stop is Stop.BAD_CRC else min(end, at + PLACED_SIZE)
        refused = self._bytes(file, at, following)
        known = self.refused
        times = known.times + 1 if known is not None and known.which == refused else 1
        self.refused = RefusedBytes(*refused, found.problem, times)
        raise CorruptReplica(
            f"Bytes that came from the master are no record at log offset {refused[0]:,}: {found.problem}"
            + (f" (the same bytes {times} times)." if times > 1 else "."),
            whole=at,
            remedy="None of them is kept or acknowledged; they are fetched again. See docs/replication.md, "
            '"Damage on the way".',
        )

    def _note(self, file: MappedFile, begin: int, end: int, reason: str) -> None:
        damage = DamagedRange(file.start + begin, file.start + end, "rot", f"the master has it so: {reason}")
        if self._parts.damage.add(damage):
            self._parts.damage.save()
            self._parts.observer.damaged(damage.kind, end - begin)
            log.error("Damage that the master's log has, too: %s", damage)

    @staticmethod
    def _bytes(file: MappedFile, begin: int, end: int) -> tuple[int, int, int]:
        return file.start + begin, end - begin, crc32(memoryview(file.map)[begin:end])
