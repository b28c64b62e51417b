"""Damaged stretches of the log: what was found, where, and what became of it.

A *torn tail* (nothing valid follows) is cut off and kept in ``broken/``; *rot* (valid records follow) stays where
it is and is read around. Rot is remembered in ``tandem.damage``, so that every later start and every tool knows it
without looking again.
"""

from dataclasses import asdict, dataclass
from pathlib import Path

from tandemmq.store.format.sealed import seal, unseal
from tandemmq.store.log.disk import Disk, write_atomically

NAME = "tandem.damage"


@dataclass(frozen=True, slots=True)
class DamagedRange:
    """Log bytes ``[begin, end)`` that cannot be read as records.

    ``kind`` is ``rot``, ``missing`` (no file) or ``torn`` (cut off).
    """

    begin: int
    end: int
    kind: str
    reason: str

    def __str__(self) -> str:
        """Say it in words."""
        return (
            f"{self.kind} at log offsets {self.begin:,}-{self.end:,} ({self.end - self.begin:,} bytes): {self.reason}"
        )


class DamageList:
    """The damaged ranges of one store, in log order."""

    def __init__(self, root: Path, disk: Disk) -> None:
        """Read what is known."""
        self._path = root / NAME
        self._disk = disk
        self.ranges: list[DamagedRange] = []
        self.changed = False  # since it was read
        try:
            self.ranges = [DamagedRange(**entry) for entry in unseal(self._path.read_bytes())["ranges"]]
        except FileNotFoundError:
            pass
        except (ValueError, TypeError, KeyError):  # found again when the log is walked; it is a note, not the truth
            self.ranges = []

    def add(self, damage: DamagedRange) -> bool:
        """Remember a range; False where it is known already."""
        if any(known.begin == damage.begin and known.end == damage.end for known in self.ranges):
            return False
        self.ranges = [known for known in self.ranges if known.end <= damage.begin or known.begin >= damage.end]
        self.ranges.append(damage)
        self.ranges.sort(key=lambda known: known.begin)
        return True

    def forget(self, damage: DamagedRange) -> None:
        """Drop a range that is no damage any more: another broker has cut the log there and written on."""
        self.ranges.remove(damage)
        self.changed = True

    def forget_below(self, offset: int) -> None:
        """Drop ranges that have expired with their files."""
        kept = [known for known in self.ranges if known.end > offset]
        if len(kept) != len(self.ranges):
            self.ranges = kept
            self.save()

    def covering(self, offset: int) -> DamagedRange | None:
        """The range that holds ``offset``."""
        return next((known for known in self.ranges if known.begin <= offset < known.end), None)

    def save(self) -> None:
        """Write the list; no file where there is no lasting damage."""
        lasting = [asdict(known) for known in self.ranges if known.kind != "torn"]
        if lasting or self._path.exists():
            write_atomically(self._disk, self._path, seal({"ranges": lasting}, indent=1))
