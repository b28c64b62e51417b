"""A real standalone cluster: our code is sent to workers that lack it, and an executor that dies costs nothing."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from tandemmq.spark.rebuilding.rebuild_job import RebuildRequest, rebuild
from tandemmq.spark.running.runner import InProcessRunner
from tests.golden import golden_store
from tests.spark.standalone_cluster import Hold, bare_python, executor_of, standalone_cluster, wait_until

pytestmark = [pytest.mark.slow, pytest.mark.golden, pytest.mark.timeout(2000)]

pytest.importorskip("pyspark", reason="PySpark is not installed: the extra `spark`")

SETTINGS = (
    "mappedFileSizeConsumeQueue=10000",
    "maxHashSlotNum=2000",
    "maxIndexNum=8000",
    "messageDelayLevel=1s 2s 3s 1h",
)
DELAY_LEVELS = (1_000, 2_000, 3_000, 3_600_000)


def _copy(target: Path) -> Path:
    shutil.copytree(golden_store("clean") / "store", target)
    return target


def _contents(store: Path) -> dict[str, bytes]:
    """Queues by name; index files, whose names are times, by their place."""
    queues = {
        str(path.relative_to(store)): path.read_bytes() for path in store.glob("consumequeue/*/*/*") if path.is_file()
    }
    index = {f"index {at}": path.read_bytes() for at, path in enumerate(sorted(store.glob("index/*")))}
    return queues | index


def _start(store: Path, master: str, python: Path, log: Path, *options: str) -> "subprocess.Popen[bytes]":
    given = [part for setting in SETTINGS for part in ("--set", setting)]
    command = [sys.executable, "-m", "tandemmq.cli.main", "rebuild", str(store), "--master", master, "--json", "--yes"]
    with log.open("w") as told, (log.parent / "report.json").open("w") as report:
        return subprocess.Popen(
            [*command, *given, *options],
            env={**os.environ, "PYSPARK_PYTHON": str(python)},
            cwd=log.parent,
            stdin=subprocess.DEVNULL,
            stdout=report,
            stderr=told,
        )


def test_a_rebuild_on_a_cluster_survives_the_death_of_an_executor(tmp_path: Path) -> None:
    expected = _copy(tmp_path / "expected")
    rebuild(
        RebuildRequest(expected, delay_levels=DELAY_LEVELS, index_slots=2000, index_entries=8000), InProcessRunner()
    )
    store = _copy(tmp_path / "store")
    shutil.rmtree(store / "consumequeue")
    shutil.rmtree(store / "index")
    python = bare_python(tmp_path / "bare")
    hold = Hold(tmp_path, "/scan/", free="/scan/0.json")
    hold.install(python)
    log = tmp_path / "job.log"
    with standalone_cluster(tmp_path, workers=2) as cluster:
        job = _start(store, cluster.address, python, log, "--range-size", "131072")
        try:
            done = store / "tandem.rebuild" / "scan" / "0.json"
            wait_until(lambda: job.poll() is not None or (done.exists() and hold.held()), "a task is done, others run")
            assert job.poll() is None, log.read_text()
            victim = executor_of(hold.held()[0])
            victim.kill()
            hold.end()
            job.wait(600)
        finally:
            if job.poll() is None:
                job.kill()
                job.wait()
        assert job.returncode == 0, log.read_text()
        wait_until(lambda: is_dead(victim), "the executor is dead")
    report = json.loads((tmp_path / "report.json").read_text())
    assert report["published"] == "offline"
    assert report["damage"] == []
    assert _contents(store) == _contents(expected)


def is_dead(process: psutil.Process) -> bool:
    try:
        return not process.is_running() or process.status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


def test_a_cluster_that_does_not_answer_is_named(tmp_path: Path) -> None:
    store = _copy(tmp_path / "store")
    before = _contents(store)
    job = _start(store, "spark://127.0.0.1:1", Path(sys.executable), tmp_path / "job.log")
    job.wait(600)
    assert job.returncode == 1
    told = json.loads((tmp_path / "job.log").read_text())["error"]
    assert told["status"] == "UNAVAILABLE"
    assert "127.0.0.1:1" in told["message"]
    assert _contents(store) == before
