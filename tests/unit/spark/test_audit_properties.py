"""Random logs and random damage to their queues and index: the audit counts what a plain comparison counts.

What is right is made by the store's own sequential code, so what an audit should find follows from comparing two sets
of files byte by byte; it reads none of these, but the log.
"""

import shutil
import struct
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import event
from hypothesis import strategies as st

from tandemmq.spark.auditing.audit_job import AuditRequest, audit
from tandemmq.spark.auditing.audit_report import AuditReport
from tandemmq.spark.running.runner import InProcessRunner
from tandemmq.store.format import index_layout
from tandemmq.store.format.index_layout import IndexHeader, read_entry
from tandemmq.store.format.unit import BLANK_UNIT, UNIT_SIZE
from tests.campaigns import examples
from tests.spark.kit import Sizes, by_log_code
from tests.unit.spark.random_logs import RandomLog, any_log, partitions

MANY = 1_000_000


@pytest.fixture(scope="module")
def scratch() -> Iterator[Path]:
    memory = Path("/dev/shm")
    with tempfile.TemporaryDirectory(prefix="tandem-", dir=memory if memory.is_dir() else None) as name:
        yield Path(name)


def look(root: Path, sizes: Sizes, cuts: int = 1) -> AuditReport:
    request = AuditRequest(
        root, partitions=cuts, details=1_000, delay_levels=sizes.levels, index_slots=sizes.slots,
        index_entries=sizes.entries,
    )  # fmt: skip
    return audit(request, InProcessRunner())


def whole_store(log: RandomLog, scratch: Path, *, sparse: bool = True) -> Path:
    """A store with the log, and the queues and index that sequential dispatch makes of it."""
    root = scratch / "store"
    shutil.rmtree(scratch, ignore_errors=True)
    log.write(root, sparse=sparse)
    by_log_code(root, scratch / "made", log.sizes)
    for name in ("consumequeue", "index"):
        if (scratch / "made" / name).is_dir():
            shutil.move(scratch / "made" / name, root / name)
    return root


def of(report: AuditReport, *kinds: str) -> int:
    return sum(report.findings.counts.get(kind, 0) for kind in kinds)


def told(report: AuditReport) -> dict[str, Any]:
    document = report.document()
    return {name: value for name, value in document.items() if name not in ("seconds", "phases")}


@examples(7, 120, any_log(), partitions, st.booleans())
def test_what_sequential_dispatch_makes_has_no_faults(scratch: Path, log: RandomLog, cuts: int, sparse: bool) -> None:
    if not any(map(any, log.files.values())):
        return
    root = whole_store(log, scratch / "one", sparse=sparse)
    report = look(root, log.sizes, cuts)
    faults = {kind.name: number for kind, number, _ in report.found(faults=True) if kind.of in ("queue", "index")}
    assert faults == {}, log.notes
    assert report.records == sum(one.records for one in report.ranges)


@examples(5, 80, any_log(), partitions)
def test_how_the_log_is_cut_does_not_matter(scratch: Path, log: RandomLog, cuts: int) -> None:
    root = whole_store(log, scratch / "one")
    for path in sorted(root.glob("consumequeue/*/*/*"))[::2]:
        path.unlink()
    assert told(look(root, log.sizes, cuts)) == told(look(root, log.sizes, 1)), log.notes


# -- consume queues -------------------------------------------------------------------------------------------------

units = st.one_of(
    st.just(bytes(UNIT_SIZE)),
    st.just(BLANK_UNIT),
    st.builds(
        struct.Struct(">qiq").pack, st.sampled_from([0, 5, 300, 1 << 50, -3]), st.sampled_from([0, 91, -1]),
        st.sampled_from([0, 7]),
    ),
)  # fmt: skip
queue_changes = st.lists(st.tuples(st.integers(0, MANY), st.integers(0, MANY), units), min_size=1, max_size=12)


@examples(10, 120, any_log(), partitions, queue_changes)
def test_changed_queues(scratch: Path, log: RandomLog, cuts: int, changes: list[tuple[int, int, bytes]]) -> None:
    root = whole_store(log, scratch / "one")
    paths = sorted(root.glob("consumequeue/*/*/*"))
    if not paths:
        return
    right = {path: path.read_bytes() for path in paths}
    now = {path: bytearray(data) for path, data in right.items()}
    for which, where, unit in changes:
        data = now[paths[which % len(paths)]]
        at = where % (len(data) // UNIT_SIZE) * UNIT_SIZE
        data[at : at + UNIT_SIZE] = unit
    for path, changed in now.items():
        path.write_bytes(changed)
    report = look(root, log.sizes, cuts)
    want = Counter[str]()
    for path in paths:
        for at in range(0, len(right[path]), UNIT_SIZE):
            was, new = right[path][at : at + UNIT_SIZE], bytes(now[path][at : at + UNIT_SIZE])
            is_message = was not in (bytes(UNIT_SIZE), BLANK_UNIT)
            if not is_message:
                want["blank" if new == BLANK_UNIT else "left"] += new != bytes(UNIT_SIZE)
            elif was != new:
                want["unit-missing" if not any(new) else "unit-blank" if new == BLANK_UNIT else "unit-wrong"] += 1
    for kind in ("unit-missing", "unit-blank", "unit-wrong"):
        assert of(report, kind) == want[kind], (kind, log.notes)
        assert sum(place.count for place in report.findings.places.get(kind, ())) == want[kind]
        event(f"{kind} {bool(want[kind])}")
    assert of(report, "unit-prefill") == want["blank"]
    assert of(report, "unit-extra", "unit-behind-end", "unit-damaged", "unit-expired") == want["left"]


# -- index ----------------------------------------------------------------------------------------------------------

index_changes = st.lists(
    st.tuples(
        st.integers(0, MANY), st.integers(0, MANY), st.sampled_from(["hash", "physical", "previous", "slot", "copy"]),
        st.integers(0, 1 << 20),
    ),
    min_size=1,
    max_size=8,
)  # fmt: skip


def change(data: bytearray, sizes: Sizes, number: int, kind: str, value: int) -> None:
    at = index_layout.entry_position(sizes.slots, number)
    if kind == "hash":
        struct.pack_into(">i", data, at, value)
    elif kind == "physical":
        struct.pack_into(">q", data, at + 4, value)
    elif kind == "previous":
        struct.pack_into(">i", data, at + 16, value % 7 - 1)
    elif kind == "slot":
        struct.pack_into(">i", data, 40 + 4 * (value % sizes.slots), value % 9)
    elif kind == "copy":
        other = index_layout.entry_position(sizes.slots, 1 + value % number)
        data[at : at + 12] = data[other : other + 12]


def entries_of(files: list[bytes], sizes: Sizes) -> Counter[tuple[int, int]]:
    found = Counter[tuple[int, int]]()
    for data in files:
        for number in range(1, IndexHeader.unpack(data).index_count):
            entry = read_entry(data, sizes.slots, number)
            found[entry.physical_offset, entry.key_hash] += 1
    return found


def unreachable(data: bytes, sizes: Sizes) -> int:
    """Entries that a search from their own slot does not come to."""
    count, missed = IndexHeader.unpack(data).index_count, 0
    for number in range(1, count):
        slot = read_entry(data, sizes.slots, number).key_hash % sizes.slots
        (at,) = struct.unpack_from(">i", data, 40 + 4 * slot)
        at = at if 0 < at < count else 0
        while at > number:
            before = read_entry(data, sizes.slots, at).previous
            at = before if 0 < before < at else 0
        missed += at != number
    return missed


@examples(10, 120, any_log(), partitions, index_changes)
def test_changed_index(scratch: Path, log: RandomLog, cuts: int, changes: list[tuple[int, int, str, int]]) -> None:
    root = whole_store(log, scratch / "one")
    paths = [path for path in sorted(root.glob("index/*")) if IndexHeader.unpack(path.read_bytes()).index_count > 1]
    if not paths:
        return
    right = [path.read_bytes() for path in paths]
    now = [bytearray(data) for data in right]
    for which, where, kind, value in changes:
        data = now[which % len(now)]
        change(data, log.sizes, 1 + where % (IndexHeader.unpack(data).index_count - 1), kind, value)
    for path, changed in zip(paths, now, strict=True):
        path.write_bytes(changed)
    report = look(root, log.sizes, cuts)
    wanted, there = entries_of(right, log.sizes), entries_of([bytes(data) for data in now], log.sizes)
    assert of(report, "entry-missing", "entry-wrong") == (wanted - there).total(), log.notes
    surplus = of(
        report, "entry-extra", "entry-twice", "entry-wrong", "entry-expired", "entry-damaged", "entry-behind-end"
    )
    assert surplus == (there - wanted).total(), log.notes
    assert of(report, "entry-unreachable") == sum(unreachable(bytes(data), log.sizes) for data in now)
    for kind in ("entry-missing", "entry-wrong", "entry-extra", "entry-twice", "entry-unreachable"):
        event(f"{kind} {bool(of(report, kind))}")
