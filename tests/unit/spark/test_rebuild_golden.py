"""The golden stores, rebuilt: against the files that RocketMQ itself wrote, and against our own sequential code."""

import asyncio
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tandemmq.spark.rebuilding.rebuild_job import rebuild
from tandemmq.spark.running.runner import InProcessRunner
from tandemmq.store.format.index_layout import IndexHeader, read_entry
from tandemmq.store.format.unit import UNIT_SIZE, Unit, is_blank, is_empty, unpack_units
from tandemmq.store.log.message_store import MessageStore
from tests.campaigns import in_campaigns
from tests.golden import copy_of, golden_store
from tests.spark.kit import GOLDEN_SIZES, Files, by_job, by_store, copy_log, files_of

pytestmark = pytest.mark.golden

PARTITIONS = (1, 2, 7, 64)


@dataclass(frozen=True)
class Differs:
    """How Java's files differ from what its log says: numbers of units and index entries, and why.

    ``stale``: they point where the log has no record (any more). ``lost``: the log has the record, they do not.
    """

    why: str = "nothing"
    stale_units: int = 0
    lost_units: int = 0
    stale_entries: int = 0
    lost_entries: int = 0


STORES = {
    "clean/store": Differs(),
    "aged/store": Differs(
        "units and entries of expired records stay where they were (5.7, 4.4)", stale_units=766, stale_entries=2094
    ),
    "crash/store": Differs(),
    "crash/store-after-java-recovery": Differs("T7: the newest index file is deleted after a crash", lost_entries=1821),
    "ha/master/store": Differs(),
    "ha/slave/store": Differs(),
    "torn/body-flip/store": Differs("the record was damaged after it was dispatched", stale_units=1, stale_entries=5),
    "torn/body-flip-old/store": Differs(
        "the record was damaged after it was dispatched", stale_units=1, stale_entries=2
    ),
    "torn/checkpoint-deleted/store": Differs(),
    "torn/cq-tail-zero/store": Differs("the end of a queue was zeroed", lost_units=5),
    "torn/cq-topic-deleted/store": Differs("the queues of a topic were deleted", lost_units=1100),
    "torn/index-deleted/store": Differs("the index was deleted", lost_entries=14420),
    "torn/log-gap/store": Differs("a file of the log was deleted", stale_units=450, stale_entries=1262),
    "torn/no-abort/store": Differs(),
    "torn/no-abort-cq-deleted/store": Differs("the queues of a topic were deleted", lost_units=1100),
    "torn/tail-zero/store": Differs("the last record was torn after it was dispatched", stale_units=1, stale_entries=4),
    "torn/body-flip/store-after-java-recovery": Differs(
        "T1, T7: the log is cut at the damage, its records stay in it",
        stale_units=187,
        lost_units=28,
        lost_entries=2414,
    ),
    "torn/cq-topic-deleted/store-after-java-recovery": Differs(
        "T5, T7, T11: blanks in the place of lost units", lost_units=734, lost_entries=1821
    ),
    "torn/tail-zero/store-after-java-recovery": Differs(
        "T1, T7: what is cut off is not zeroed", stale_units=1, lost_entries=1821
    ),
}
TELLING = ("crash/store", "torn/body-flip/store", "torn/log-gap/store")


def place_of(name: str) -> Path:
    """Where a golden store is."""
    head, _, tail = name.partition("/")
    return golden_store(head) / tail


def units_of(files: Files) -> dict[str, list[Unit | None]]:
    """The units of each queue by queue offset, None for what is no message; files of the queue in one."""
    queues: dict[str, list[Unit | None]] = {}
    for name, data in sorted(files.queues.items()):
        queue, _, start = name.rpartition("/")
        units = queues.setdefault(queue, [])
        units += [None] * (int(start) // UNIT_SIZE - len(units))
        units += [None if is_blank(unit) or is_empty(unit) else unit for unit in unpack_units(data)]
    return queues


def entries_of(files: Files) -> Iterator[tuple[int, int]]:
    """Hash and physical offset of every index entry, in their order."""
    for data in files.index:
        for number in range(1, IndexHeader.unpack(data).index_count):
            entry = read_entry(data, GOLDEN_SIZES.slots, number)
            yield entry.key_hash, entry.physical_offset


def differences(ours: Files, java: Files, why: str) -> Differs:
    """Count them. Units of both that differ are a fault, as are entries in another order."""
    stale = lost = 0
    mine, theirs = units_of(ours), units_of(java)
    for queue in mine.keys() | theirs.keys():
        here, there = mine.get(queue, []), theirs.get(queue, [])
        for offset in range(max(len(here), len(there))):
            a = here[offset] if offset < len(here) else None
            b = there[offset] if offset < len(there) else None
            assert a is None or b is None or a == b, f"{queue} {offset}: {a} {b}"
            stale += a is None and b is not None
            lost += a is not None and b is None
    entries, of_java = list(entries_of(ours)), list(entries_of(java))
    common = Counter(entries) & Counter(of_java)
    assert [one for one in entries if one in common] == [one for one in of_java if one in common]
    return Differs(why, stale, lost, len(of_java) - common.total(), len(entries) - common.total())


@pytest.mark.slow
@pytest.mark.parametrize("name", [*TELLING, *in_campaigns(*sorted(STORES.keys() - TELLING))])
def test_rebuilt_as_java_and_as_our_store_wrote_it(name: str, tmp_path: Path) -> None:
    """Entire files of the store's own sequential code for any number of partitions; of Java's what must be equal."""
    place, differs = place_of(name), STORES[name]
    store = by_store(place, tmp_path / "sequential", GOLDEN_SIZES)
    want, java = files_of(tmp_path / "sequential"), files_of(place)
    copy = copy_log(place, tmp_path / "copy")
    for partitions in PARTITIONS:
        files, report = by_job(copy, tmp_path / "staging", GOLDEN_SIZES, partitions)
        assert files.differences(want) == []
        assert (report.messages, report.end) == (store.recovery.records, store.recovery.ended_at)
        assert [(one.begin, one.end, one.kind) for one in report.damage] == [
            (one.begin, one.end, one.kind) for one in store.recovery.damage
        ]
    if differs == Differs():
        assert want.differences(java) == []  # entire files
    assert differences(want, java, differs.why) == differs


@pytest.mark.parametrize("name", [*TELLING, *in_campaigns(*sorted(STORES.keys() - TELLING))])
def test_published_and_started(name: str, tmp_path: Path) -> None:
    """Rebuilt in place, with the checkpoint and the mark of a crash that Java left: a store that starts serves it."""
    place = place_of(name)
    by_store(place, tmp_path / "sequential", GOLDEN_SIZES)
    want = files_of(tmp_path / "sequential")
    root = copy_of(place, tmp_path)
    kept = set(files_of(root).queues) - set(want.queues)
    report = rebuild(GOLDEN_SIZES.request(root, partitions=3, publish=True), InProcessRunner())
    assert report.published == "offline"
    for _ in range(2):
        published = files_of(root)
        assert not kept - set(published.queues)  # queues without messages in the log count on
        queues = {file: data for file, data in published.queues.items() if file not in kept}
        assert Files(queues, published.index).differences(want) == []
        notes = start_once(root)
        assert [note for note in notes if "checkpoint is missing" not in note] == []
        if name == "torn/body-flip-old/store":  # after a crash of another broker all queues are compared with the log,
            return  # and that does not look at checksums: the damaged record has its unit again


def start_once(root: Path) -> list[str]:
    """Open the store as any start does, wait until it restores nothing more, close it; gives what it noted."""

    async def once() -> list[str]:
        store = MessageStore.open(GOLDEN_SIZES.config(root, verify_whole_log_on_start=False))
        store.start()
        await asyncio.wait_for(store.rebuilt(), 60)
        await store.close()
        return store.recovery.notes

    return asyncio.run(once())
