"""What a scan of the log is asked for. Nothing here is compiled, so a query is planned without loading what reads."""

from dataclasses import dataclass, replace

import pyarrow as pa

from tandemmq.spark.reading.ranges import LogRange
from tandemmq.spark.source.conditions import Condition


@dataclass(frozen=True, slots=True)
class ScanWanted:
    """What a scan gives: columns, and conditions that rows must meet; picklable.

    ``key``: a key that a message must have, among its KEYS or as its UNIQ_KEY.
    """

    schema: pa.Schema
    conditions: tuple[Condition, ...] = ()
    key: str | None = None

    def also(self, condition: Condition) -> "ScanWanted":
        """The same with one more condition."""
        return replace(self, conditions=(*self.conditions, condition))


@dataclass(frozen=True, slots=True)
class ReadRange:
    """A range of the log, and how to read it; picklable.

    ``limit``: log offset where the log ends for certain: what reaches beyond it is not finished, and left out; None if
    the end is where records end. ``last``: it lies in the last file, so that nothing valid after a place means that
    the log ends there, and no damage. ``damaged``: give rows for what is no valid record.
    """

    range: LogRange
    limit: int | None = None
    last: bool = False
    check_crc: bool = True
    damaged: bool = True
