"""Real kills: of the whole job, again and again, until one gets through; of Spark's Python workers; and full disks."""

import ctypes
import os
import random
import shutil
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import psutil
import pytest

from tandemmq.spark.errors import StagingMismatch, TaskFailed, UnequalFiles
from tandemmq.spark.rebuilding.rebuild_job import rebuild
from tandemmq.spark.rebuilding.staging import StagingDirectory
from tandemmq.spark.running.runner import InProcessRunner, PoolRunner, SparkRunner, Task
from tests.faults.harness import SEED
from tests.spark.kit import Files, copy_log, files_of
from tests.spark.kit_big import write
from tests.spark.kit_job import SIZES, Job
from tests.spark.standalone_cluster import Hold, bare_python, executor_of, wait_until

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.timeout(2000)

MESSAGES = 150_000
KILLS = 8
UNCOUNTED = 8
"""A job that goes on writes some documents that are no progress: the plan, and what it finds and cannot use."""


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A store at rest, written by itself; rebuilds are left staged in it."""
    root = tmp_path_factory.mktemp("killed") / "store"
    write(root, SIZES, MESSAGES, SEED)
    yield root
    shutil.rmtree(root)


@pytest.fixture(scope="module")
def want(store: Path) -> Files:
    """What its own dispatch wrote."""
    return files_of(store)


@pytest.fixture
def staging(store: Path) -> Iterator[Path]:
    """Where the job works."""
    yield store / "tandem.rebuild"
    shutil.rmtree(store / "tandem.rebuild", ignore_errors=True)


def progress(staging: Path) -> int:
    """Documents that the job has written."""
    place = StagingDirectory(staging)
    return place.count("scan") + place.count("built") + (staging / "queues.json").exists()


@pytest.mark.slow
def test_a_job_killed_again_and_again(store: Path, want: Files, staging: Path, tmp_path: Path) -> None:
    """At random amounts of work done; each goes on where the last was, and the bytes are the same.

    A job does not get far beyond the amount, however late one looks: it waits there to be killed.
    """
    chance, kills = random.Random(SEED), 0
    for number in range(KILLS):
        before, more = progress(staging), chance.randrange(12)
        goal = before + more
        scanned = StagingDirectory(staging).count("scan")
        hold = Hold(tmp_path / f"{number}", ".json", passes=more + UNCOUNTED)
        job = Job(store, tmp_path / "job.log", hold=hold)
        if not job.kill_when(lambda: (staging / "plan.json").exists() and progress(staging) >= goal):  # noqa: B023
            assert job.report()["resumed_ranges"] >= scanned
            continue
        kills += 1
        assert StagingDirectory(staging).count("scan") >= scanned
    scanned = StagingDirectory(staging).count("scan")
    report = Job(store, tmp_path / "job.log").report()
    assert report["resumed_ranges"] == scanned
    assert report["messages"] == MESSAGES
    assert files_of(staging).differences(want) == []
    assert kills > KILLS // 3


@pytest.mark.slow
def test_a_spark_job_killed_whole(store: Path, want: Files, staging: Path, tmp_path: Path) -> None:
    """Driver, JVM and Python workers at once, amid the scan; then again, with other partitions."""
    hold = Hold(tmp_path, "/scan/", passes=4)  # of each of two workers
    job = Job(store, tmp_path / "job.log", master="local[2,4]", hold=hold)
    assert job.kill_when(lambda: StagingDirectory(staging).count("scan") > 5)
    scanned = StagingDirectory(staging).count("scan")
    report = Job(store, tmp_path / "job.log", partitions=3, master="local[2,4]").report()
    assert report["resumed_ranges"] >= scanned > 5
    assert files_of(staging).differences(want) == []


@pytest.mark.slow
def test_an_executor_killed(store: Path, want: Files, staging: Path, tmp_path: Path) -> None:
    """A cluster's process with its workers: its tasks go to the other one."""
    python = bare_python(tmp_path / "bare")
    hold = Hold(tmp_path, "/scan/", free="/scan/0.json")
    hold.install(python)
    job = Job(
        store, tmp_path / "job.log", partitions=60, master="local-cluster[2,1,1024]", python=str(python)
    )  # fmt: skip
    done = staging / "scan" / "0.json"
    wait_until(lambda: job.process.poll() is not None or (done.exists() and hold.held()), "a task is done, others run")
    assert job.process.poll() is None, (tmp_path / "job.log").read_text()
    executor_of(hold.held()[0]).kill()
    hold.end()
    report = job.report()
    assert report["messages"] == MESSAGES
    assert files_of(staging).differences(want) == []


class _WaitingForAKill(SparkRunner):
    """Its tasks are not over before one has been killed, however late the killer comes."""

    def __init__(self, session: "SparkSession", killed: Path) -> None:
        super().__init__(session)
        self._killed = killed

    def run(self, task: Task, count: int, name: str) -> list[str]:
        return super().run(_Waits(task, self._killed, after=count // 2), count, name)


class _Waits:
    def __init__(self, task: Task, killed: Path, after: int) -> None:
        self._task, self._killed, self._after = task, killed, after

    def __call__(self, number: int) -> str | None:
        while number >= self._after and not self._killed.exists():
            time.sleep(0.01)
        return self._task(number)


@pytest.mark.slow
def test_python_workers_killed(
    session: "SparkSession", store: Path, want: Files, staging: Path, tmp_path: Path
) -> None:
    """Their tasks are tried again, on what the killed ones have left half done."""
    killed: list[int] = []
    over, first = threading.Event(), tmp_path / "killed"

    def kill_some() -> None:
        goals = [3, 15, 30]
        while not over.wait(0.002) and goals:
            if StagingDirectory(staging).count("scan") < goals[0]:
                continue
            workers = [one for one in psutil.Process().children(recursive=True) if is_worker(one)]
            for worker in workers[:1]:
                with suppress(psutil.NoSuchProcess):  # one that was idle may end by itself
                    worker.kill()
                    killed.append(worker.pid)
                    first.touch()
                    goals.pop(0)

    killer = threading.Thread(target=kill_some)
    killer.start()
    try:
        rebuild(SIZES.request(store, partitions=40), _WaitingForAKill(session, first))
    finally:
        over.set()
        killer.join()
    assert killed
    assert files_of(staging).differences(want) == []


class _FatalPool(PoolRunner):
    """A pool in which one task ends its process."""

    def run(self, task: Task, count: int, name: str) -> list[str]:
        return super().run(_Fatal(task, at=30), count, name)


class _Fatal:
    def __init__(self, task: Task, at: int) -> None:
        self._task, self._at = task, at

    def __call__(self, number: int) -> str | None:
        if number == self._at:
            os.kill(os.getpid(), signal.SIGKILL)
        return self._task(number)


@pytest.mark.slow
def test_a_process_of_the_pool_killed(store: Path, want: Files, staging: Path) -> None:
    """Without Spark nothing is tried again by itself: it is told, and the next run goes on."""
    with _FatalPool(2) as runner, pytest.raises(TaskFailed, match="a process of the pool has died"):
        rebuild(SIZES.request(store, partitions=60), runner)
    with PoolRunner(2) as runner:
        assert rebuild(SIZES.request(store, partitions=60), runner).resumed_ranges > 5
    assert files_of(staging).differences(want) == []


def is_worker(process: psutil.Process) -> bool:
    """Whether it is a Python process that Spark has forked for tasks: a child of its daemon."""
    try:
        parent = process.parent()
        return parent is not None and all("pyspark" in " ".join(one.cmdline()) for one in (process, parent)) and (
            "python" in parent.name()
        )  # fmt: skip
    except psutil.NoSuchProcess:
        return False


@pytest.mark.slow
def test_two_jobs_in_one_staging_directory(store: Path, want: Files, staging: Path) -> None:
    """The second is refused, and harms nothing."""
    place = StagingDirectory(staging)
    rebuild(SIZES.request(store, partitions=5), InProcessRunner())
    with place.locked(), pytest.raises(StagingMismatch, match="Another job works in"):
        rebuild(SIZES.request(store, partitions=5), InProcessRunner())
    assert files_of(staging).differences(want) == []


def test_a_directory_that_is_something_else(store: Path, tmp_path: Path) -> None:
    (tmp_path / "precious").mkdir()
    (tmp_path / "precious" / "thesis.txt").write_text("years of work")
    with pytest.raises(StagingMismatch, match=r"holds other things than a rebuild: thesis\.txt"):
        rebuild(SIZES.request(store, staging=tmp_path / "precious"), InProcessRunner())
    assert (tmp_path / "precious" / "thesis.txt").read_text() == "years of work"


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A disk with room for a part of the work."""
    libc = ctypes.CDLL(None, use_errno=True)
    path = tmp_path / "disk"
    path.mkdir()
    if os.geteuid() != 0 or libc.mount(b"tmpfs", str(path).encode(), b"tmpfs", 0, b"size=4m") != 0:
        pytest.skip("a tmpfs cannot be mounted here")
    try:
        yield path
    finally:
        libc.umount2(str(path).encode(), 2)  # MNT_DETACH


@pytest.mark.slow
@pytest.mark.root
@pytest.mark.parametrize("ballast", [0, 1, 2, 3])
def test_a_full_disk_is_an_error_and_with_room_it_goes_on(
    store: Path, want: Files, small_disk: Path, ballast: int
) -> None:
    """Spills, queues, index files or documents: whatever it hits first. No SIGBUS, and the store's files stay."""
    filler = small_disk / "filler"
    filler.write_bytes(bytes(ballast << 20))
    libc = ctypes.CDLL(None, use_errno=True)
    request = SIZES.request(store, staging=small_disk / "tandem.rebuild", partitions=20)
    with pytest.raises(OSError, match="No space left on device"):
        rebuild(request, InProcessRunner())
    assert files_of(store).differences(want) == []
    flags = 32  # MS_REMOUNT
    assert libc.mount(b"tmpfs", str(small_disk).encode(), b"tmpfs", flags, b"size=200m") == 0
    report = rebuild(request, InProcessRunner())
    assert files_of(small_disk / "tandem.rebuild").differences(want) == []
    assert report.resumed_ranges > 0 or ballast > 2


@pytest.mark.slow
@pytest.mark.root
def test_a_full_disk_through_spark(session: "SparkSession", store: Path, small_disk: Path) -> None:
    """The reason is told in one line."""
    with pytest.raises(TaskFailed, match="No space left on device"):
        rebuild(
            SIZES.request(store, staging=small_disk / "tandem.rebuild", partitions=4), SparkRunner(session)
        )  # fmt: skip


@pytest.mark.slow
@pytest.mark.root
def test_a_staging_directory_that_cannot_be_written_to(store: Path, want: Files, small_disk: Path) -> None:
    """A read-only disk; the path is named, and the store's files stay."""
    (small_disk / "tandem.rebuild").mkdir()
    libc = ctypes.CDLL(None, use_errno=True)
    flags = 33  # MS_REMOUNT, MS_RDONLY
    assert libc.mount(b"tmpfs", str(small_disk).encode(), b"tmpfs", flags, b"size=4m") == 0
    with pytest.raises(OSError, match=r"Read-only file system.*tandem\.rebuild"):
        rebuild(SIZES.request(store, staging=small_disk / "tandem.rebuild"), InProcessRunner())
    assert files_of(store).differences(want) == []


@pytest.mark.parametrize("damage", ["gone", "cut", "misnamed"])
def test_a_log_file_that_cannot_be_read(store: Path, staging: Path, tmp_path: Path, damage: str) -> None:
    """Gone between plan and scan, cut, or of a strange name: an error that names it, and nothing is published."""
    copy = copy_log(store, tmp_path / "copy")
    path = sorted((copy / "commitlog").iterdir())[1]
    request = SIZES.request(copy, partitions=4, publish=True)
    if damage == "cut":
        os.truncate(path, 1 << 20)
    elif damage == "misnamed":
        path.rename(path.with_name(f"{int(path.name) + 5:020d}"))

    class Losing(InProcessRunner):
        """Removes the file before the first task."""

        def run(self, task: Task, count: int, name: str) -> list[str]:
            if damage == "gone":
                path.unlink(missing_ok=True)
            return super().run(task, count, name)

    with pytest.raises((UnequalFiles, FileNotFoundError), match=path.name if damage == "gone" else "commitlog"):
        rebuild(request, Losing())
    assert not (copy / "consumequeue").exists()
    assert not (copy / "index").exists()
