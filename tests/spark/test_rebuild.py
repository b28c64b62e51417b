"""The rebuild on Spark: the same files as in one process, and what becomes of errors on the way through the JVM."""

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tandemmq.spark.errors import TaskFailed
from tandemmq.spark.rebuilding.rebuild_job import rebuild
from tandemmq.spark.running.runner import SparkRunner
from tests.golden import golden_store
from tests.spark.kit import GOLDEN_SIZES, by_job, by_store, copy_log, files_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.mark.golden
@pytest.mark.parametrize(
    ("name", "kept"),
    [
        ("aged", "store"),
        pytest.param("clean", "store", marks=pytest.mark.slow),
        pytest.param("torn", "body-flip/store", marks=pytest.mark.slow),
    ],
)
def test_golden_stores_on_spark(session: "SparkSession", name: str, kept: str, tmp_path: Path) -> None:
    place = golden_store(name) / kept
    by_store(place, tmp_path / "sequential", GOLDEN_SIZES)
    want = files_of(tmp_path / "sequential")
    copy = copy_log(place, tmp_path / "copy")
    runner = SparkRunner(session)
    for partitions in (2, 64) if name == "clean" else (7,):
        files, _ = by_job(copy, tmp_path / "staging", GOLDEN_SIZES, partitions, runner)
        assert files.differences(want) == []
    if name == "clean":
        assert want.differences(files_of(place)) == []


@pytest.mark.slow
@pytest.mark.golden
def test_a_task_that_fails_says_why_and_its_work_can_be_gone_on_with(session: "SparkSession", tmp_path: Path) -> None:
    """The queue directory of one topic cannot be made: a file has its name. Everything else is kept."""
    copy = copy_log(golden_store("clean") / "store", tmp_path / "copy")
    staging = copy / "tandem.rebuild"
    (staging / "consumequeue").mkdir(parents=True)
    request = GOLDEN_SIZES.request(copy, partitions=7)
    runner = SparkRunner(session)
    rebuild(request, runner)
    want = files_of(staging)
    (staging / "plan.json").unlink()  # begin anew
    blocked = sorted((staging / "consumequeue").iterdir())[0].name

    class Blocking(SparkRunner):
        """Puts a file where a directory should be, before the tasks run."""

        def run(self, task, count, name):  # type: ignore[no-untyped-def]
            (staging / "consumequeue").mkdir(exist_ok=True)
            (staging / "consumequeue" / blocked).touch()
            return super().run(task, count, name)

    with pytest.raises(TaskFailed, match=r"(FileExistsError|NotADirectoryError).*" + blocked[:6]):
        rebuild(request, Blocking(session))
    (staging / "consumequeue" / blocked).unlink()
    rebuild(request, runner)
    assert files_of(staging).differences(want) == []
