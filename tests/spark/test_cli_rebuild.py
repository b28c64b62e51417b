"""`tandem rebuild` as a person runs it: sizes from settings or files, progress, metrics, errors told at once."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from tandemmq.cli.files import rebuild as command
from tandemmq.spark.rebuilding.rebuild_metrics import RebuildMetrics
from tandemmq.spark.running.progress import Progress
from tandemmq.store.format.index_layout import file_size
from tandemmq.store.settings import load_settings
from tests.golden import golden_store
from tests.spark.standalone_cluster import Hold, wait_until

pytestmark = pytest.mark.timeout(900)

SETTINGS = ("mappedFileSizeConsumeQueue=10000", "maxHashSlotNum=2000", "maxIndexNum=8000")
WITHOUT_SPARK = ("--master", "processes")
"""Where it is not Spark that matters: its Java takes long to start."""

GIVEN = [part for setting in (*SETTINGS, "messageDelayLevel=1s 2s 3s 1h") for part in ("--set", setting)]


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """A copy of a store that RocketMQ wrote, without consume queues and index."""
    pytest.importorskip("pyspark", reason="PySpark is not installed: the extra `spark`")
    copy = shutil.copytree(golden_store("clean") / "store", tmp_path / "store")
    shutil.rmtree(copy / "consumequeue")
    shutil.rmtree(copy / "index")
    return Path(copy)


def tandem(*arguments: str) -> "subprocess.CompletedProcess[str]":
    """The command, ended."""
    done = subprocess.run(
        [sys.executable, "-m", "tandemmq.cli.main", *arguments],
        stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=400, check=False,
    )  # fmt: skip
    assert "Traceback" not in done.stderr
    return done


def queues_of(store: Path) -> dict[str, bytes]:
    return {str(path.relative_to(store)): path.read_bytes() for path in store.glob("consumequeue/*/*/*")}


@pytest.mark.golden
@pytest.mark.slow
def test_queues_and_index_come_back_as_java_wrote_them(store: Path) -> None:
    told = tandem("rebuild", str(store), *GIVEN)
    assert told.returncode == 0, told.stderr
    original = golden_store("clean") / "store"
    assert queues_of(store) == queues_of(original)
    index, expected = (sorted(place.glob("index/*")) for place in (store, original))
    assert [path.read_bytes() for path in index] == [path.read_bytes() for path in expected]
    assert "7,064 messages" in told.stdout
    assert "They are in place." in told.stdout
    assert told.stderr.splitlines()[0].startswith("reading the log: ")
    assert not (store / "tandem.rebuild").exists()


@pytest.mark.golden
@pytest.mark.slow
def test_it_can_be_made_first_and_put_in_place_later(store: Path) -> None:
    first = tandem("rebuild", str(store), *GIVEN, *WITHOUT_SPARK, "--no-publish", "--json")
    assert first.returncode == 0, first.stderr
    assert first.stderr == ""
    report = json.loads(first.stdout)
    assert (report["published"], report["staging"]) == ("staged", str(store / "tandem.rebuild"))
    assert not (store / "consumequeue").exists()
    second = json.loads(tandem("rebuild", str(store), *GIVEN, *WITHOUT_SPARK, "--json").stdout)
    assert second["published"] == "offline"
    assert second["resumed_ranges"] > 0
    assert queues_of(store) == queues_of(golden_store("clean") / "store")


@pytest.mark.golden
@pytest.mark.slow
def test_progress_is_served_for_prometheus(store: Path, tmp_path: Path) -> None:
    hold = Hold(tmp_path, "/scan/")
    words = [sys.executable, "-m", "tandemmq.cli.main", "rebuild", str(store), *GIVEN, *WITHOUT_SPARK]
    with open(tmp_path / "told", "w") as told:
        job = subprocess.Popen(
            [*words, "--metrics-port", "0"],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=told, env=hold.environment,
        )  # fmt: skip
    try:
        wait_until(lambda: re.search(r"metrics: \S+\n", (tmp_path / "told").read_text()), "the address is told")
        address = (tmp_path / "told").read_text().split()[1]
        seen: set[str] = set()

        def has_seen_the_scan() -> bool:
            assert job.poll() is None, "it ended without having been seen at work"
            with urllib.request.urlopen(address, timeout=60) as answer:
                text = answer.read().decode()
            seen.update(re.findall(r'tandem_rebuild_phase{phase="(\w+)",store="[^"]*"} 1\.0', text))
            return "scan" in seen

        wait_until(has_seen_the_scan, "the scan is seen")
        wait_until(hold.held, "the tasks stand there")
        assert job.poll() is None
    finally:
        hold.end()
        job.wait(400)
    assert job.returncode == 0


def test_a_directory_without_a_log_is_told_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    java = tmp_path / "home" / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text(f"#!/bin/sh\ntouch {tmp_path / 'started'}\nexit 1\n")
    java.chmod(0o755)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "home"))
    told = tandem("rebuild", str(tmp_path), "--json", "--master", "local[1]")
    assert told.returncode == 1
    assert json.loads(told.stderr)["error"]["status"] == "NOT_FOUND"
    assert not (tmp_path / "started").exists(), "Spark was not started for this"


@pytest.mark.golden
def test_sizes_that_the_files_contradict_are_told_before_anything_is_done(tmp_path: Path) -> None:
    copy = shutil.copytree(golden_store("clean") / "store", tmp_path / "store")
    told = tandem("rebuild", str(copy))
    assert told.returncode == 2
    assert "maxHashSlotNum and maxIndexNum" in told.stderr
    assert not (Path(copy) / "tandem.rebuild").exists()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (("--internal", "127.0.0.1:9081"), "--running"),
        (("--running", "nowhere"), "HOST:PORT"),
        (("--partitions", "0"), "greater than or equal to 1"),
        (("--set", "maxIndexNum"), "KEY=VALUE"),
        (("--conf", "spark.x"), "NAME=VALUE"),
    ],
)
def test_a_wrong_command_line(tmp_path: Path, arguments: tuple[str, ...], reason: str) -> None:
    (tmp_path / "commitlog").mkdir()
    (tmp_path / "commitlog" / ("0" * 20)).write_bytes(bytes(4096))
    told = tandem("rebuild", str(tmp_path), *arguments)
    assert told.returncode == 2
    assert reason in told.stderr


def _lay_out(root: Path, log_file_size: int, index_file_size: int | None) -> Iterator[Path]:
    (root / "commitlog").mkdir(parents=True)
    yield root / "commitlog" / ("0" * 20)
    if index_file_size is not None:
        (root / "index").mkdir()
        yield root / "index" / "20260101000000000"


@pytest.mark.parametrize(
    ("log_file_size", "index_file_size", "slots"),
    [
        (64 << 20, None, 500_000),
        (1 << 30, None, 5_000_000),
        (4096, None, 5_000_000),
        (64 << 20, file_size(5_000_000, 20_000_000), 5_000_000),
        (1 << 30, file_size(500_000, 2_000_000), 500_000),
    ],
)
def test_defaults_are_those_that_the_files_show(
    tmp_path: Path, log_file_size: int, index_file_size: int | None, slots: int
) -> None:
    """A store started without a file has smaller index files than RocketMQ's (profile `embedded`)."""
    for path, size in zip(
        _lay_out(tmp_path, log_file_size, index_file_size), (log_file_size, index_file_size), strict=False
    ):
        path.touch()
        os.truncate(path, size or 0)
    request = command._request(tmp_path, None, None, running=None, internal=None)
    assert request.index_slots == slots
    assert request.consume_queue_file_size is None
    given = command._request(tmp_path, None, ["maxHashSlotNum=7"], running=None, internal=None)
    assert given.index_slots == 7
    config = tmp_path / "broker.conf"
    config.write_text("mappedFileSizeConsumeQueue=2000\nmessageDelayLevel=1s 2s\n")
    read = command._request(tmp_path, config, None, running=None, internal=None)
    assert (read.consume_queue_file_size, read.delay_levels) == (2000, (1000, 2000))


def test_a_running_stores_sizes_are_its_own(tmp_path: Path) -> None:
    for path in _lay_out(tmp_path, 4096, None):
        path.write_bytes(bytes(4096))
    request = command._request(tmp_path, None, None, running="host:8081", internal=None)
    assert (request.running, request.internal, request.index_slots) == ("host:8081", "host:9081", None)
    request = command._request(tmp_path, None, None, running="host:8081", internal="other:1")
    assert request.internal == "other:1"


def test_the_variable_that_names_the_cluster_is_no_setting() -> None:
    assert load_settings(environment={"TANDEM_SPARK_MASTER": "spark://master:7077"}) == load_settings(environment={})


def test_metrics_follow_the_phases(tmp_path: Path) -> None:
    metrics = RebuildMetrics(tmp_path)
    registry = metrics.registry()

    def value(name: str, phase: str) -> float | None:
        return registry.get_sample_value(f"tandem_rebuild_{name}", {"store": str(tmp_path), "phase": phase})

    assert value("phase", "scan") == 0
    metrics.update(Progress("scan", 25, 100))
    assert (value("phase", "scan"), value("done_bytes", "scan"), value("size_bytes", "scan")) == (1, 25, 100)
    assert value("progress_ratio", "scan") == 0.25
    assert value("done_bytes", "index") is None
    metrics.update(Progress("scan", 100, 100))
    metrics.update(Progress("publish", 0, 0))
    assert (value("phase", "scan"), value("progress_ratio", "scan")) == (0, 1)
    assert (value("phase", "publish"), value("progress_ratio", "publish")) == (1, 0)


def is_java(process: psutil.Process) -> bool:
    try:
        return process.name() == "java"
    except psutil.NoSuchProcess:  # Spark's script starts others, which live for a moment
        return False


@pytest.mark.golden
@pytest.mark.slow
def test_ctrl_c_leaves_no_java_and_no_traceback(store: Path, tmp_path: Path) -> None:
    """Ctrl-C reaches the whole group of a terminal's foreground job; here too."""
    job = subprocess.Popen(
        [sys.executable, "-m", "tandemmq.cli.main", "rebuild", str(store), *GIVEN, "--range-size", "65536"],
        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, start_new_session=True,
    )  # fmt: skip
    try:
        started: list[psutil.Process] = []

        def java_runs() -> bool:
            assert job.poll() is None, "it ended without having been interrupted"
            started[:] = psutil.Process(job.pid).children(recursive=True)
            return any(map(is_java, started))

        wait_until(java_runs, "Java runs")
        os.killpg(job.pid, signal.SIGINT)
        _, told = job.communicate(timeout=400)
    finally:
        if job.poll() is None:
            job.kill()
            job.wait()
    assert job.returncode == 130
    assert told.splitlines()[-1].startswith("Interrupted; ")
    assert "Traceback" not in told
    _, alive = psutil.wait_procs(started, timeout=150)
    assert not alive
    assert not (store / "consumequeue").exists()
