"""Audits and rebuilds of a node that runs: real processes with progress and report, which end in every way."""

import json
import os
import shutil
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import grpc
import psutil
import pytest

from tandemmq.admin.v1 import admin_pb2 as pb
from tandemmq.client import Outgoing
from tests.admin_process import AdminProcess, lone_node, running
from tests.faults.pair import Node
from tests.faults.pair_process import until

DEADLINE = 120.0
STOPPED = "admin was stopped while it ran"


def start(admin: AdminProcess, kind: "pb.JobKind.ValueType" = pb.AUDIT, node: str = "one", **fields: Any) -> pb.Job:
    return admin.stub.StartJob(pb.StartJobRequest(kind=kind, node=node, **fields), timeout=DEADLINE)


def watch(admin: AdminProcess, job: pb.Job) -> list[pb.Job]:
    """The job at each time that it moved on, up to its end."""
    states = list(admin.stub.WatchJob(pb.GetJobRequest(id=job.id), timeout=DEADLINE))
    assert [one.state == pb.RUNNING for one in states] == [True] * (len(states) - 1) + [False]
    assert [one.progress for one in states] == sorted(one.progress for one in states)
    return states


def get(admin: AdminProcess, job: pb.Job) -> pb.Job:
    return admin.stub.GetJob(pb.GetJobRequest(id=job.id), timeout=DEADLINE)


def cancel(admin: AdminProcess, job: pb.Job) -> pb.Job:
    return admin.stub.CancelJob(pb.GetJobRequest(id=job.id), timeout=DEADLINE)


def jobs(admin: AdminProcess) -> list[pb.Job]:
    return list(admin.stub.ListJobs(pb.ListJobsRequest(), timeout=DEADLINE).jobs)


def refusal(admin: AdminProcess, **fields: Any) -> tuple[grpc.StatusCode, str]:
    with pytest.raises(grpc.RpcError) as raised:
        start(admin, **fields)
    return raised.value.code(), str(raised.value.details())


def process_of(admin: AdminProcess) -> psutil.Process:
    """That of the only job that runs."""
    assert admin.process is not None
    (process,) = psutil.Process(admin.process.pid).children()
    return process


def held_up(process: psutil.Process) -> list[psutil.Process]:
    """The job and what it has started, which stands still: so it cannot be done before the test has ended it."""
    until(lambda: len(process.children(recursive=True)) >= 2, DEADLINE, "its own processes")
    started = process.children(recursive=True)
    for one in started:
        one.suspend()
    return [process, *started]


def gone(processes: list[psutil.Process]) -> bool:
    return not any(one.is_running() and one.status() != psutil.STATUS_ZOMBIE for one in processes)


def fill(node: Node, topic: str, count: int = 2000) -> None:
    with node.client() as client:
        for begin in range(0, count, 100):
            client.send_batch(
                [Outgoing(topic, b"%d" % n, keys=[f"k{n}"], queue_id=n % 4) for n in range(begin, begin + 100)]
            )


@pytest.fixture(scope="module")
def filled(node: Node) -> Node:
    fill(node, "j-topic")
    return node


# -- how they go -------------------------------------------------------------------------------------------------------


def test_an_audit_tells_its_progress_and_reports(admin: AdminProcess, filled: Node) -> None:
    job = start(admin)
    assert (job.state, job.node, job.kind) == (pb.RUNNING, "one", pb.AUDIT)
    assert job.command == f"tandem data audit {filled.root} --running {filled.address('store')}"
    *_, last = watch(admin, job)
    assert (last.state, last.problem, last.progress) == (pb.SUCCEEDED, "", 1.0), list(last.log)
    assert last.started_ms <= last.ended_ms
    report = json.loads(last.report_json)
    assert (report["faults"], report["directory"]) == (0, str(filled.root))
    assert report["records"] >= 2000
    assert get(admin, job) == last
    listed = next(one for one in jobs(admin) if one.id == job.id)
    assert (listed.state, listed.report_json, list(listed.log)) == (pb.SUCCEEDED, "", [])
    kept = json.loads((admin.directory / "jobs" / f"{job.id}.json").read_text())["job"]
    assert json.loads(kept["report_json"]) == report


@pytest.mark.slow
def test_a_rebuild_is_taken_over_by_the_running_store(admin: AdminProcess, filled: Node) -> None:
    job = start(admin, pb.REBUILD, topics=["j-topic"])
    assert f"--internal {filled.address('internal')} --topic=j-topic --master=processes" in job.command
    fill(filled, "j-meanwhile", 500)
    *_, last = watch(admin, job)
    assert last.state == pb.SUCCEEDED, (last.problem, list(last.log))
    report = json.loads(last.report_json)
    assert (report["published"], report["queues"], report["queue_units"]) == ("adopted", 4, 2000)
    with filled.client() as client:
        assert [one.max_offset for one in client.offsets("j-topic")] == [500] * 4
        assert [record.body for record in client.pull("j-topic", 0, 0, max_messages=2).records] == [b"0", b"4"]
        assert sum(one.max_offset for one in client.offsets("j-meanwhile")) == 500


@pytest.mark.slow
def test_an_audit_that_finds_faults_has_failed_and_says_how_many(tmp_path: Path) -> None:
    node = lone_node(tmp_path / "alpha")
    with running(node), AdminProcess(tmp_path / "own", {"one": node}, files=True) as admin:
        fill(node, "j-faults", 100)
        assert node.store.stop() == 0
        (unit, *_) = sorted((node.root / "consumequeue" / "j-faults" / "0").iterdir())
        with unit.open("r+b") as file:
            file.write(b"\0" * 7 + b"\1")
        job = start(admin)
        assert job.command == f"tandem data audit {node.root}", "the store does not run"
        *_, last = watch(admin, job)
        assert last.state == pb.FAILED
        faults = json.loads(last.report_json)["faults"]
        assert faults > 0
        assert last.problem == f"it found {faults:,} faults"
        code, words = refusal(admin, kind=pb.REBUILD)
        assert code == grpc.StatusCode.FAILED_PRECONDITION
        assert f"tandem data rebuild {node.root}" in words


@pytest.mark.slow
def test_the_same_directory_under_another_path(filled: Node, tmp_path: Path) -> None:
    """As where admin runs in another container: the store's own path leads nowhere there."""
    other = tmp_path / "mounted"
    other.mkdir()
    mounts = f"mount --bind {filled.root} {other} && mount -t tmpfs none {filled.directory}"
    elsewhere = ["unshare", "--mount", "sh", "-c", f'{mounts} && exec "$@"', "sh"]
    if shutil.which("unshare") is None or subprocess.run([*elsewhere, "true"], check=False).returncode:
        pytest.skip("nothing can be mounted here")
    rebuild = ["rebuild", str(other), "--running", filled.address("store"), "--internal", filled.address("internal")]
    command = [sys.executable, "-m", "tandemmq.cli.main", *rebuild, "--topic=j-topic", "--master=processes", "--json"]
    done = subprocess.run([*elsewhere, *command], capture_output=True, text=True, timeout=DEADLINE, check=False)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["published"] == "adopted"


# -- how they end otherwise --------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_cancelled_job_and_what_it_has_started_are_gone(admin: AdminProcess, filled: Node) -> None:
    job = start(admin, pb.REBUILD)
    process = process_of(admin)
    family = held_up(process)
    assert process.nice() == min(psutil.Process().nice() + 10, 19)
    ended = cancel(admin, job)
    assert (ended.state, ended.problem) == (pb.CANCELLED, "")
    until(lambda: gone(family), 60, "all of it has ended")
    assert cancel(admin, job).state == pb.CANCELLED, "once more changes nothing"
    with filled.client() as client:
        assert [one.max_offset for one in client.offsets("j-topic")] == [500] * 4


@pytest.mark.slow
def test_a_job_that_is_killed_has_failed(admin: AdminProcess, filled: Node) -> None:
    job = start(admin)
    process_of(admin).kill()
    last = watch(admin, job)[-1]
    assert (last.state, last.problem) == (pb.FAILED, "it was killed: SIGKILL")


@pytest.mark.slow
def test_one_job_a_node_and_two_in_all(filled: Node, tmp_path: Path) -> None:
    names = {"one": filled, "two": filled, "three": filled}  # for this it does not matter that they are the same
    with AdminProcess(tmp_path / "own", names, files=True) as admin:
        assert admin.process is not None
        first = start(admin)
        process_of(admin).suspend()
        code, words = refusal(admin, node="one")
        assert (code, "job of node one runs already" in words) == (grpc.StatusCode.FAILED_PRECONDITION, True)
        second = start(admin, node="two")
        for process in psutil.Process(admin.process.pid).children():
            process.suspend()
        code, words = refusal(admin, node="three")
        assert (code, "one, two" in words) == (grpc.StatusCode.FAILED_PRECONDITION, True)
        assert [one.id for one in jobs(admin)] == [second.id, first.id] or first.started_ms == second.started_ms
        for process in psutil.Process(admin.process.pid).children():
            process.kill()
        until(lambda: all(one.state == pb.FAILED for one in jobs(admin)), DEADLINE, "both have ended")
        assert cancel(admin, start(admin, node="three")).state == pb.CANCELLED


@pytest.mark.slow
def test_a_job_dies_with_admin_and_the_next_admin_knows(filled: Node, tmp_path: Path) -> None:
    admin = AdminProcess(tmp_path / "own", {"one": filled}, files=True)
    with admin:
        killed = start(admin, pb.REBUILD)
        process = process_of(admin)
        family = held_up(process)
        admin.stop(signal.SIGKILL)
        until(lambda: gone(family[:1]), 60, "the job has ended")
        for one in family[1:]:  # they end by themselves, for which they have to run
            with suppress(psutil.NoSuchProcess):
                one.resume()
        until(lambda: gone(family), 60, "all of it has ended")
    with admin:
        known = get(admin, killed)
        assert (known.state, known.problem, known.command) == (pb.FAILED, STOPPED, killed.command)
        assert known.ended_ms >= known.started_ms
        stopped = start(admin, pb.REBUILD)
        family = held_up(process_of(admin))
        assert admin.stop() == 0
        until(lambda: gone(family), 60, "all of it has ended")
    with admin:
        assert {(one.id, one.state, one.problem) for one in jobs(admin)} == {
            (killed.id, pb.FAILED, STOPPED),
            (stopped.id, pb.FAILED, STOPPED),
        }


@pytest.mark.slow
def test_so_many_are_kept(filled: Node, tmp_path: Path) -> None:
    with AdminProcess(tmp_path / "own", {"one": filled}, files=True, jobs_kept=2) as admin:
        ids = [cancel(admin, start(admin)).id for _ in range(3)]
        assert {one.id for one in jobs(admin)} <= set(ids)
        assert len(jobs(admin)) == 2
        assert len(list((tmp_path / "own" / "jobs").iterdir())) == 2


# -- what cannot be ----------------------------------------------------------------------------------------------------


def test_requests_that_cannot_be(admin: AdminProcess) -> None:
    for fields, code, words in (
        ({"node": "nobody"}, grpc.StatusCode.NOT_FOUND, "nobody"),
        ({"kind": pb.JOB_KIND_UNSPECIFIED}, grpc.StatusCode.INVALID_ARGUMENT, "kind is missing"),
        ({"spark_master": "--conf=x"}, grpc.StatusCode.INVALID_ARGUMENT, "spark_master"),
        ({"spark_master": "yarn"}, grpc.StatusCode.INVALID_ARGUMENT, "spark_master"),
    ):
        said = refusal(admin, **fields)
        assert (said[0], words in said[1]) == (code, True), said
    for call in (admin.stub.GetJob, admin.stub.CancelJob):
        with pytest.raises(grpc.RpcError) as raised:
            call(pb.GetJobRequest(id="../actions"), timeout=DEADLINE)
        assert raised.value.code() == grpc.StatusCode.NOT_FOUND
    with pytest.raises(grpc.RpcError) as raised:
        next(admin.stub.WatchJob(pb.GetJobRequest(id="x"), timeout=DEADLINE))
    assert raised.value.code() == grpc.StatusCode.NOT_FOUND


@pytest.mark.slow
def test_files_that_admin_does_not_see(filled: Node, tmp_path: Path) -> None:
    with AdminProcess(tmp_path / "own", {"one": filled}) as admin:
        code, words = refusal(admin)
        assert code == grpc.StatusCode.FAILED_PRECONDITION
        assert f"tandem data audit {filled.root} --running {filled.address('store')}" in words
    elsewhere = lone_node(tmp_path / "other").root
    (elsewhere / "commitlog").mkdir(parents=True)
    (elsewhere / "commitlog" / f"{0:020}").write_bytes(b"\0" * 131072)
    entry = f"one={filled.address('store')};metasync={filled.address('metasync')};files={elsewhere}"
    with AdminProcess(tmp_path / "own", {"one": filled}, admin_nodes=entry) as admin:
        *_, last = watch(admin, start(admin))
        assert last.state == pb.FAILED
        assert f"has its files in {filled.root}, not in {elsewhere}" in last.problem
        assert not jobs(admin)[0].report_json


@pytest.fixture
def without_numpy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An installation that lacks a package."""
    (tmp_path / "less").mkdir()
    (tmp_path / "less" / "numpy.py").write_text(
        "raise ModuleNotFoundError(\"No module named 'numpy'\", name='numpy')\n"
    )
    monkeypatch.setenv("PYTHONPATH", f"{tmp_path / 'less'}{os.pathsep}{os.environ.get('PYTHONPATH', '')}")


@pytest.mark.slow
@pytest.mark.usefixtures("without_numpy")
def test_a_package_that_is_missing_is_told_as_such(filled: Node, tmp_path: Path) -> None:
    with AdminProcess(tmp_path / "own", {"one": filled}, files=True) as admin:
        *_, last = watch(admin, start(admin))
        assert last.state == pb.FAILED
        assert "the Python package numpy is not installed where admin runs" in last.problem


@pytest.mark.slow
def test_a_job_that_cannot_be_written_down_is_not_started(filled: Node, tmp_path: Path) -> None:
    with AdminProcess(tmp_path / "own", {"one": filled}, files=True) as admin:
        (tmp_path / "own").mkdir(exist_ok=True)
        (tmp_path / "own" / "jobs").write_text("in the way")
        code, words = refusal(admin)
        assert (code, "cannot be written down" in words) == (grpc.StatusCode.FAILED_PRECONDITION, True)
        assert admin.process is not None
        assert not psutil.Process(admin.process.pid).children()
