"""Damaged stretches of the log: what was found, where, and what became of it.

A *torn tail* (nothing valid follows) is cut off and kept in ``broken/``; *rot* (valid records follow) stays where
it is and is read around. Rot is remembered in ``tandem.damage``, so that every later start and every tool knows it
without looking again. JSON::

    {"version": 1, "ranges": [{"begin": 7, "end": 9, "kind": "rot", "reason": "…"}], "crc32": 42}

A list that cannot be used, or that the manifest says there was, is found again: the whole log is walked.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Protocol

from tandemmq.common.documents.sealed import seal, unseal
from tandemmq.common.files.replacing import write_atomically
from tandemmq.store.log.edges.disk import Disk
from tandemmq.store.log.recovery.file_problems import FileProblem

NAME = "tandem.damage"
VERSION = 1


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


class KnownDamage(Protocol):
    """The ranges that a reader of the log steps over."""

    @property
    def ranges(self) -> Sequence[DamagedRange]:
        """All of them, in log order."""
        ...

    def covering(self, offset: int) -> DamagedRange | None:
        """The range that holds ``offset``."""
        ...


class NoDamage:
    """For who reads damaged ranges like everything else, to see what is in them now."""

    ranges: Sequence[DamagedRange] = ()

    def covering(self, offset: int) -> DamagedRange | None:
        """No range holds any offset."""
        return None


class DamageList:
    """The damaged ranges of one store, in log order."""

    def __init__(
        self, root: Path, disk: Disk, problems: list[FileProblem] | None = None, *, expected: bool = False
    ) -> None:
        """Read what is known; what cannot be used goes to ``problems``.

        ``expected``: there was damage, so there must be a list.
        """
        self._path = root / NAME
        self._disk = disk
        self.ranges: list[DamagedRange] = []
        self.changed = False  # since it was read
        self.is_lost = False
        """There is a list that cannot be used: what it said must be found again."""
        self._healing: DamagedRange | None = None
        try:
            self.ranges = _ranges(unseal(self._path.read_bytes()))
        except FileNotFoundError:
            if expected:
                self._lost(problems, "the manifest says that there is damage, and this list of it is gone")
        except (ValueError, TypeError, KeyError) as error:
            self._lost(problems, str(error))

    def _lost(self, problems: list[FileProblem] | None, why: str) -> None:
        self.is_lost = self.changed = True
        if problems is not None:
            problems.append(FileProblem(NAME, f"{why}; the whole log is read to find the damage again"))

    @property
    def lasting(self) -> list[DamagedRange]:
        """The ranges that the file holds: all but what was cut off."""
        ranges = self.ranges if self._healing is None else [*self.ranges, self._healing]
        return [known for known in ranges if known.kind != "torn"]

    def add(self, damage: DamagedRange) -> bool:
        """Remember a range; False where it is known already."""
        if any((known.begin, known.end) == (damage.begin, damage.end) for known in self.ranges if known.kind != "torn"):
            return False
        self.ranges = [known for known in self.ranges if known.end <= damage.begin or known.begin >= damage.end]
        self.ranges.append(damage)
        self.ranges.sort(key=lambda known: known.begin)
        return True

    def forget(self, damage: DamagedRange) -> None:
        """Drop a range that is no damage any more: a file has come back, or another broker has written there."""
        self.ranges.remove(damage)
        self.changed = True

    def begin_healing(self, damage: DamagedRange) -> None:
        """A range can be read again. The file says so after `healed` only."""
        self._healing = damage
        self.ranges = [known for known in self.ranges if known != damage]

    def healed(self) -> None:
        """All that belongs to it is durable. Raises OSError: then call `healing_failed`."""
        self._healing = None
        self.save()

    def healing_failed(self, damage: DamagedRange) -> None:
        """It is not: the range counts as damaged still."""
        self._healing = None
        self.add(damage)

    def forget_below(self, offset: int) -> None:
        """Drop ranges that have expired with their files."""
        kept = [known for known in self.ranges if known.end > offset]
        if len(kept) != len(self.ranges):
            self.ranges = kept
            self.save()

    def forget_from(self, offset: int) -> None:
        """Drop ranges after the end of the log at ``offset``: they were cut off, and come again."""
        kept = [known for known in self.ranges if known.begin < offset]
        if len(kept) != len(self.ranges):
            self.ranges = kept
            self.save()

    def covering(self, offset: int) -> DamagedRange | None:
        """The range that holds ``offset``."""
        return next((known for known in self.ranges if known.begin <= offset < known.end), None)

    def save(self) -> None:
        """Write the list; no file where there is no lasting damage."""
        lasting = [asdict(known) for known in self.lasting]
        if lasting or self._path.exists():
            write_atomically(self._disk, self._path, seal({"version": VERSION, "ranges": lasting}, indent=1))


def _ranges(document: dict[str, Any]) -> list[DamagedRange]:
    """What a list says. Raises ValueError, TypeError, KeyError: it is none, or cannot be true."""
    if document.get("version", VERSION) != VERSION:  # the first ones had none
        raise ValueError(f"version {document['version']} is not known")
    ranges = [DamagedRange(**entry) for entry in document["ranges"]]
    if not all(type(one.begin) is int and type(one.end) is int and 0 <= one.begin < one.end for one in ranges):
        raise ValueError("a range is no stretch of a log")
    return ranges
