"""The plan of a rebuild: what is read, what is made of it. It is kept in the staging directory; every task reads it."""

from dataclasses import asdict, dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from tandemmq.spark.errors import StagingMismatch
from tandemmq.spark.reading.layout import StoreLayout
from tandemmq.spark.reading.log_files import LogFile
from tandemmq.spark.reading.ranges import LogRange
from tandemmq.spark.rebuilding.staging import PLAN, StagingDirectory


@dataclass(frozen=True, slots=True)
class RebuildPlan:
    """What a rebuild is to do.

    ``end``: log offset after the last record to read; None for all there is. ``topics``: whose queues; None for all.
    ``source``: what the log was when it was planned, so that nothing is resumed on another log. ``whole``: starts of
    files that are not split. ``boot``: of the machine: what a task has written is not on disk before it is checked, so
    nothing is gone on with after a power cut.
    """

    root: Path
    layout: StoreLayout
    ranges: list[LogRange]
    source: list[list[Any]]
    end: int | None = None
    topics: tuple[str, ...] | None = None
    queues: bool = True
    index: bool = True
    whole: tuple[int, ...] = ()
    boot: str = ""

    def same_work(self, other: "RebuildPlan") -> bool:
        """Whether what was done for one plan can be used for the other. How the log is cut does not matter."""
        names = ("root", "layout", "source", "topics", "queues", "index", "boot")
        return all(getattr(self, name) == getattr(other, name) for name in names)

    def save(self, staging: StagingDirectory) -> None:
        """Write it. Raises OSError."""
        document = asdict(self)
        document["root"] = str(self.root)
        document["ranges"] = [
            [r.number, str(r.file.path), r.file.start, r.file.size, r.begin, r.end, r.exact] for r in self.ranges
        ]
        staging.write(PLAN, document)


def saved_plan(staging: StagingDirectory) -> RebuildPlan | None:
    """The plan in a staging directory, None without one."""
    document = staging.read(PLAN)
    if document is None:
        return None
    layout = document["layout"]
    return RebuildPlan(
        root=Path(document["root"]),
        layout=StoreLayout(
            layout["queue_file_size"], layout["index_slots"], layout["index_entries"], tuple(layout["delay_levels"])
        ),
        ranges=[
            LogRange(number, LogFile(Path(path), start, size), begin, end, exact)
            for number, path, start, size, begin, end, exact in document["ranges"]
        ],
        source=document["source"],
        end=document["end"],
        topics=None if document["topics"] is None else tuple(document["topics"]),
        queues=document["queues"],
        index=document["index"],
        whole=tuple(document["whole"]),
        boot=document["boot"],
    )


def plan_of(staging: StagingDirectory) -> RebuildPlan:
    """The plan, as a task needs it; read once a process. Raises StagingMismatch."""
    path = staging.path / PLAN
    try:
        stamp = path.stat().st_mtime_ns
    except FileNotFoundError as error:
        raise StagingMismatch(f"{staging.path} holds no plan of a rebuild.") from error
    return _plan_of(staging.path, stamp)


@lru_cache(maxsize=4)
def _plan_of(path: Path, stamp: int) -> RebuildPlan:
    plan = saved_plan(StagingDirectory(path))
    if plan is None:
        raise StagingMismatch(f"The plan in {path} cannot be read.")
    return plan
