"""The tasks of a rebuild. Each takes the staging directory and its number, and leaves a document there.

A task may be run twice, also at the same time (a cluster does so when a worker seems dead): it writes the same bytes to
the same places, and its document last. What is done already is not done again.
"""

import mmap
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from tandemmq.spark.errors import CheckFailed
from tandemmq.spark.reading.ranges import LogRange
from tandemmq.spark.reading.walking import Damage, RangeResult, RangeWalker
from tandemmq.spark.rebuilding.index_builder import IndexFilePlan, Spill, build_part, finish_file
from tandemmq.spark.rebuilding.keys_spill import SpillWriter
from tandemmq.spark.rebuilding.queue_writer import Interval, QueueFiles, QueueKey, RunWriter
from tandemmq.spark.rebuilding.rebuild_plan import RebuildPlan, plan_of
from tandemmq.spark.rebuilding.staging import StagingDirectory, sync_file
from tandemmq.store.format.compiled.index import entries_before
from tandemmq.store.format.compiled.keys import keys_of
from tandemmq.store.format.unit import BLANK_UNIT, UNIT_FIELDS, UNIT_SIZE, is_queue_name
from tandemmq.store.format.walker import UnitRun

_UNIT = np.dtype(UNIT_FIELDS)
_BLANK_SIZE = 0x7FFFFFFF
_CHECK_UNITS = 1 << 20


def scan(path: str, number: int) -> None:
    """Walk a range with checksums: units to their places, keys to the spill. Raises OSError."""
    staging = StagingDirectory(Path(path))
    if staging.read(f"scan/{number}.json") is not None:
        return
    plan = plan_of(staging)
    log_range = plan.ranges[number]
    staging.keys.mkdir(exist_ok=True)
    with (
        RangeWalker(log_range, delay_levels=plan.layout.delay_levels) as walking,
        QueueFiles(staging.queues, plan.layout.queue_file_size) as files,
        SpillWriter(staging.keys, number) as spill,
    ):
        writer = RunWriter(files)
        strange = 0
        for walk in walking.walks():
            if plan.queues:
                strange += _put_runs(writer, walk.runs(), plan)
            if plan.index:
                spill.add(keys_of(walk))
        writer.flush()
    staging.write(f"scan/{number}.json", scan_document(walking.result, writer.intervals, spill.count, strange))


def _put_runs(writer: RunWriter, runs: Sequence[UnitRun], plan: RebuildPlan) -> int:
    """Gives the number of records in queues that cannot be: their names would be no directories."""
    strange = 0
    for run in runs:
        if plan.topics is not None and run.topic not in plan.topics:
            continue
        if is_queue_name(run.topic, run.queue_id):
            writer.put(run)
        else:
            strange += run.count
    return strange


def scan_document(
    result: RangeResult, intervals: dict[QueueKey, list[Interval]], keys: int, strange: int
) -> dict[str, Any]:
    """What a scan leaves for the driver."""
    return {
        "first": result.first,
        "next": result.next,
        "torn": [result.torn_at, result.torn_end, result.torn_reason],
        "records": result.records,
        "max_store_timestamp": result.max_store_timestamp,
        "damage": [[one.begin, one.end, one.kind, one.reason] for one in result.damage],
        "keys": keys,
        "strange": strange,
        "queues": [[topic, queue_id, *map(list, of_queue)] for (topic, queue_id), of_queue in intervals.items()],
    }


def read_scan(document: dict[str, Any]) -> tuple[RangeResult, dict[QueueKey, list[Interval]]]:
    """The result and the queue offsets in a scan's document."""
    torn_at, torn_end, torn_reason = document["torn"]
    result = RangeResult(
        first=document["first"],
        next=document["next"],
        torn_at=torn_at,
        torn_end=torn_end,
        torn_reason=torn_reason,
        records=document["records"],
        max_store_timestamp=document["max_store_timestamp"],
        damage=[Damage(*one) for one in document["damage"]],
    )
    return result, {
        (topic, queue_id): [Interval(*one) for one in rest] for topic, queue_id, *rest in document["queues"]
    }


def write_again(path: str, number: int) -> None:
    """Write the units of irregular queues from one range, those that their queue accepts. Raises OSError."""
    staging = StagingDirectory(Path(path))
    plan, document = plan_of(staging), staging.read("queues.json") or {}
    accepted = {
        (topic, queue_id): [Interval(*one) for one in intervals] for topic, queue_id, intervals in document["irregular"]
    }
    log_range: LogRange = plan.ranges[document["again"][number]]
    with (
        RangeWalker(log_range, delay_levels=plan.layout.delay_levels) as walking,
        QueueFiles(staging.queues, plan.layout.queue_file_size) as files,
    ):
        writer = RunWriter(files, accepted)
        for walk in walking.walks():
            for run in walk.runs():
                writer.put(run)
        writer.flush()


def check_queues(path: str, number: int) -> None:
    """Fill the blanks of a group of queues, read all their units again, and make them durable.

    Raises:
        CheckFailed: a queue does not hold what the log has.
        OSError: the disk refused.
    """
    staging = StagingDirectory(Path(path))
    if staging.read(f"built/queues.{number}.json") is not None:
        return
    plan, document = plan_of(staging), staging.read("queues.json") or {}
    units = 0
    with QueueFiles(staging.queues, plan.layout.queue_file_size) as files:
        for topic, queue_id, first, end, count, blanks in document["groups"][number]:
            key = topic, queue_id
            for begin, stop in blanks:
                for at in range(begin, stop, _CHECK_UNITS):
                    files.write(key, at, BLANK_UNIT * (min(at + _CHECK_UNITS, stop) - at))
            units += _check_queue(files, key, first, end, count, plan)
    staging.write(f"built/queues.{number}.json", {"units": units})


def _check_queue(files: QueueFiles, key: QueueKey, first: int, end: int, count: int, plan: RebuildPlan) -> int:
    """Whether the units are messages in the order of the log, as many as there should be."""
    per_file = plan.layout.units_per_file
    before, found = -1, 0
    for begin in range(first - first % per_file, end, per_file):
        path = files.path(key, begin)
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            low, high = max(first, begin), min(end, begin + per_file)
            data = os.pread(fd, (high - low) * UNIT_SIZE, (low - begin) * UNIT_SIZE)
            units = np.frombuffer(data, _UNIT)
            messages = units[~((units["physical"] == 0) & (units["size"] == _BLANK_SIZE) & (units["tags"] == 0))]
            offsets = messages["physical"].astype(np.int64)
            if (
                len(units) != high - low
                or (messages["size"] <= 0).any()
                or (np.diff(offsets, prepend=before) <= 0).any()
            ):
                raise CheckFailed(f"{path} has units that are not in the order of the log: queue {key[1]} of {key[0]}.")
            if len(offsets):
                before = int(offsets[-1])
            found += len(messages)
            os.fdatasync(fd)
        finally:
            os.close(fd)
    if found != count:
        raise CheckFailed(f"Queue {key[1]} of {key[0]} has {found:,} units, the log has {count:,} messages for it.")
    return found


def build(path: str, number: int, index_parts: int) -> None:
    """A part of an index file, or the check of a group of queues. Raises as `build_index` and `check_queues`."""
    if number < index_parts:
        build_index(path, number)
    else:
        check_queues(path, number - index_parts)


def build_index(path: str, number: int) -> None:
    """Build the part of an index file that one task has. Raises OSError."""
    staging = StagingDirectory(Path(path))
    plan, document = plan_of(staging), staging.read("index.json") or {}
    file_number, low, high = document["parts"][number]
    if staging.read(f"built/{file_number}.{low}.json") is not None:
        return
    file, spills = index_file(document, file_number), [Spill(*one) for one in document["spills"]]
    used = build_part(
        staging.index / file.name, file, plan.layout.index_slots, plan.layout.index_entries, (low, high), spills,
        staging.keys,
    )  # fmt: skip
    sync_file(staging.index / file.name)  # while others still work: what is left behind the last part is little
    staging.write(f"built/{file_number}.{low}.json", {"used": used})


def finish_index(path: str, number: int) -> None:
    """Write the header of an index file, look at all its entries, and make it durable.

    Raises:
        CheckFailed: an entry is missing, or not in the order of the log.
        OSError: the disk refused.
    """
    staging = StagingDirectory(Path(path))
    plan, document = plan_of(staging), staging.read("index.json") or {}
    file, spills = index_file(document, number), [Spill(*one) for one in document["spills"]]
    used = sum(
        (staging.read(f"built/{number}.{low}.json") or {})["used"] for of, low, _ in document["parts"] if of == number
    )
    target = staging.index / file.name
    header = finish_file(target, file, used, spills, staging.keys)
    fd = os.open(target, os.O_RDWR | os.O_CLOEXEC)
    try:
        buffer = mmap.mmap(fd, 0, access=mmap.ACCESS_READ)
        last = entries_before(
            buffer, plan.layout.index_slots, plan.layout.index_entries, header.end_physical_offset + 1
        )
        if last != header.index_count:
            raise CheckFailed(f"{target}: entry {last:,} of {header.index_count - 1:,} is damaged.")
        os.fdatasync(fd)
    finally:
        os.close(fd)


def index_file(document: dict[str, Any], number: int) -> IndexFilePlan:
    """The plan of an index file in the document."""
    name, first, count, previous = document["files"][number]
    return IndexFilePlan(name, first, count, None if previous is None else (previous[0], previous[1]))
