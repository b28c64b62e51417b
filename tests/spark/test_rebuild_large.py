"""A large store: what Spark rebuilds is what the store's own dispatch wrote, file by file.

``TANDEM_TEST_REBUILD_MILLIONS=<n>``: of so many million messages.
"""

import filecmp
import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tandemmq.spark.rebuilding.rebuild_job import RebuildReport, rebuild
from tandemmq.spark.running.runner import SparkRunner
from tests.spark.kit import Sizes
from tests.spark.kit_big import write

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MILLIONS = int(os.environ.get("TANDEM_TEST_REBUILD_MILLIONS", "5"))
MESSAGES = MILLIONS * 1_000_000
SIZES = Sizes(log_file=MILLIONS * 25 << 20, queue_file=200_000, slots=100_000, entries=MILLIONS * 200_000)


def names_below(root: Path) -> list[str]:
    """The derived files of a store or a staging directory; those of the index by their place, not their name."""
    return sorted(str(path.relative_to(root)) for path in root.glob("consumequeue/*/*/*"))


def assert_same_files(staged: Path, store: Path) -> None:
    """Byte for byte."""
    names = names_below(store)
    assert names_below(staged) == names
    for name in names:
        assert filecmp.cmp(staged / name, store / name, shallow=False), name
    mine, theirs = sorted((staged / "index").iterdir()), sorted((store / "index").iterdir())
    assert len(mine) == len(theirs) > 4
    for number, (here, there) in enumerate(zip(mine, theirs, strict=True)):
        assert filecmp.cmp(here, there, shallow=False), f"index file {number}"


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_millions_of_messages_for_any_number_of_partitions(session: "SparkSession", tmp_path: Path) -> None:
    root = tmp_path / "store"
    try:
        write(root, SIZES, MESSAGES, seed=5)
        for partitions in (1, 2, 7, 64):
            report: RebuildReport = rebuild(SIZES.request(root, partitions=partitions), SparkRunner(session))
            assert (report.messages, report.queue_units) == (MESSAGES, MESSAGES)
            assert not report.damage
            assert not report.irregular_queues
            assert_same_files(root / "tandem.rebuild", root)
            shutil.rmtree(root / "tandem.rebuild")
    finally:
        shutil.rmtree(root)
