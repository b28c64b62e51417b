"""Random logs, cut anywhere: the rebuild writes what the store itself writes, byte for byte."""

import shutil
from pathlib import Path

from hypothesis import assume
from hypothesis import strategies as st

from tests.campaigns import examples
from tests.spark.kit import by_job, by_log_code, by_store, files_of
from tests.unit.spark.random_logs import RandomLog, any_log, partitions


def compare(log: RandomLog, scratch: Path, cuts: int, sparse: bool) -> None:
    place = scratch / "one"
    shutil.rmtree(place, ignore_errors=True)
    root = log.write(place / "store", sparse=sparse)
    want = by_log_code(root, place / "sequential", log.sizes)
    got, _ = by_job(root, place / "staging", log.sizes, cuts)
    assert "\n".join(got.differences(want)) == "", log.notes


@examples(10, 200, any_log(damaged=False), partitions, st.booleans())
def test_sound_logs(scratch: Path, log: RandomLog, cuts: int, sparse: bool) -> None:
    compare(log, scratch, cuts, sparse)


@examples(15, 300, any_log(), partitions, st.booleans())
def test_damaged_logs(scratch: Path, log: RandomLog, cuts: int, sparse: bool) -> None:
    compare(log, scratch, cuts, sparse)


@examples(5, 60, any_log(), partitions, st.booleans())
def test_as_a_store_that_starts_on_it(scratch: Path, log: RandomLog, cuts: int, sparse: bool) -> None:
    """Recovery of the whole log, with its own look at damage: the same files, the same end, the same damage."""
    place = scratch / "one"
    shutil.rmtree(place, ignore_errors=True)
    root = log.write(place / "store", sparse=sparse)
    got, report = by_job(root, place / "staging", log.sizes, cuts)
    assume(not report.strange_names)
    store = by_store(root, place / "sequential", log.sizes)
    assert "\n".join(got.differences(files_of(place / "sequential"))) == "", log.notes
    damage = [(one.begin, one.end, one.kind) for one in store.recovery.damage]
    assert [(one.begin, one.end, one.kind) for one in report.damage] == damage
    assert (report.end, report.messages) == (store.recovery.ended_at, store.recovery.records)
