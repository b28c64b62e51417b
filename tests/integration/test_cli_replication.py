"""`tandem serve replicator`, `metasync`, `replicas`, `promote`, `follow` and `reseed`, as a person runs them."""

import json
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tandemmq.cli.pair.replication import _say_status
from tandemmq.cli.talk.output import Output
from tandemmq.common.settings.broker_role import BrokerRole
from tandemmq.store.log.edges.disk import LocalDisk
from tandemmq.store.log.marks.lock import StoreLock
from tandemmq.store.log.replica.mastership import Mastership
from tests.faults.pair_process import free_port
from tests.integration.test_cli import RunningStore, tandem

pytestmark = [pytest.mark.xdist_group("cli"), pytest.mark.timeout(300)]

NO_PORTS = ("--set", "grpcPort=0", "--set", "metricsPort=0")


@contextmanager
def service(name: str, directory: Path, *options: str) -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, "-m", "tandemmq.cli.main", name, "--data", str(directory), *NO_PORTS, *options]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def words_of(process: "subprocess.Popen[str]", lines: int) -> str:
    assert process.stdout is not None
    return "".join(process.stdout.readline() for _ in range(lines))


# -- the services -----------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("replicator", ("--set", "haListenPort=0", "--set", "storeAddress=127.0.0.1:1")),
        ("metasync", ()),
        ("admin", ("--set", "consolePort=0")),
    ],
)
def test_a_service_says_where_it_listens_and_when_it_has_stopped(
    name: str, options: tuple[str, ...], tmp_path: Path
) -> None:
    with service(name, tmp_path, "--json", *options) as process:
        serving = json.loads(words_of(process, 1))
        assert serving["event"] == "serving"
        assert serving["pid"] == process.pid
        assert serving["address"].startswith("127.0.0.1:")
        assert serving["metrics"].endswith("/metrics")
        assert serving["directory"].startswith(str(tmp_path))
        process.send_signal(signal.SIGINT)
        out, _ = process.communicate(timeout=60)
        assert json.loads(out.splitlines()[-1]) == {"event": "stopped"}
        assert process.returncode == 0


def test_a_replicator_in_words(tmp_path: Path) -> None:
    with service("replicator", tmp_path, "--set", "haMasterAddress=10.0.0.1:10912") as process:
        told = words_of(process, 6)
    assert told.startswith("The replicator is running; stop it with Ctrl-C.\n")
    assert "follows 10.0.0.1:10912" in told
    assert "accepts slaves on 127.0.0.1:10912" in told
    assert str(tmp_path) in told


def test_a_metasync_in_words(tmp_path: Path) -> None:
    with service("metasync", tmp_path, "--set", "metasyncMasterAddress=10.0.0.1:8082") as process:
        told = words_of(process, 5)
    assert told.startswith("The metasync is serving; stop it with Ctrl-C.\n")
    assert "10.0.0.1:8082" in told
    assert str(tmp_path / "config") in told


def test_an_admin_in_words(tmp_path: Path) -> None:
    with service("admin", tmp_path, "--set", "consolePort=0", "--set", "adminNodes=left=10.0.0.1,right=h:1") as process:
        told = words_of(process, 7)
    assert told.startswith("The admin is serving; stop it with Ctrl-C.\n")
    assert "http://127.0.0.1:" in told
    assert "10.0.0.1:8081" in told
    assert "right" in told
    assert str(tmp_path) in told


def test_settings_of_an_admin(tmp_path: Path) -> None:
    shown = tandem("settings", "--service", "admin", "--data", str(tmp_path), "--set", "jobsKept=7", "--json")
    by_name = {one["name"]: one["value"] for one in shown.document["settings"]}
    assert (by_name["adminDirectory"], by_name["jobsKept"]) == (str(tmp_path), "7")
    refused = tandem("admin", "--data", str(tmp_path), "--set", "adminNodes=nowhere")
    assert refused.code == 2
    assert "'nowhere' is no node" in refused.err
    assert len(refused.err.splitlines()) == 1


@pytest.mark.parametrize("name", ["replicator", "metasync"])
def test_a_misspelt_setting_is_one_line(name: str, tmp_path: Path) -> None:
    refused = tandem(name, "--data", str(tmp_path), "--set", "brokerNam=x")
    assert refused.code == 2
    assert "did you mean brokerName?" in refused.err
    assert len(refused.err.splitlines()) == 1


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "of_its_own"), [("store", "flushDiskType"), ("replicator", "haSlaveAck"), ("metasync", "metasyncInterval")]
)
def test_settings_of_each_service(name: str, of_its_own: str, tmp_path: Path) -> None:
    shown = tandem("settings", "--service", name, "--data", str(tmp_path), "--json")
    assert shown.code == 0
    by_name = {one["name"]: one for one in shown.document["settings"]}
    assert of_its_own in by_name
    assert by_name["storePathRootDir"]["value"] == str(tmp_path)
    text = tandem("settings", "--service", name, "--changed", "--data", str(tmp_path))
    assert "storePathRootDir" in text.out


# -- who follows whom -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("command", ["replicas", "promote", "follow"])
def test_a_replicator_that_is_not_there(command: str) -> None:
    refused = tandem(command, "--address", "127.0.0.1:1")
    assert refused.code == 1
    assert refused.err == (
        "tandem: no replicator answers at 127.0.0.1:1; `tandem up` and `tandem serve replicator` start one\n"
    )


@pytest.mark.parametrize("address", ["here", "127.0.0.1:", ":8084", "127.0.0.1:port"])
def test_an_address_that_is_none(address: str) -> None:
    refused = tandem("replicas", "--address", address)
    assert refused.code == 2
    assert "is no address of a replicator" in refused.err


@pytest.mark.slow
def test_a_store_is_no_replicator(tmp_path: Path) -> None:
    running = RunningStore(tmp_path / "store", "internalPort=0")
    try:
        refused = running("replicas")
    finally:
        running.stop()
    assert refused.code == 1
    assert "a store answers, and a replicator is wanted" in refused.err


def test_the_address_comes_from_the_environment_too() -> None:
    refused = tandem("replicas", environment={"TANDEM_REPLICATOR_ADDRESS": "127.0.0.1:2"})
    assert "127.0.0.1:2" in refused.err


@pytest.mark.slow
def test_a_master_is_not_promoted_and_nothing_changes(tmp_path: Path) -> None:
    internal = free_port()
    running = RunningStore(tmp_path, f"internalPort={internal}")
    try:
        with service(
            "replicator", tmp_path, "--json", "--set", f"storeAddress=127.0.0.1:{internal}", "--set", "haListenPort=0"
        ) as process:
            address = json.loads(words_of(process, 1))["address"]
            shown = until_linked(address)
            assert shown["role"] == "ASYNC_MASTER"
            assert shown["epoch"] == 1
            assert shown["replicas"] == []
            words = tandem("replicas", "--address", address)
            assert "ASYNC_MASTER in epoch 1" in words.out
            refused = tandem("promote", "--address", address)
            assert refused.code == 1
            assert "not a slave" in refused.err
            assert until_linked(address)["epoch"] == 1
    finally:
        running.stop()


def until_linked(address: str) -> dict[str, Any]:
    end = time.monotonic() + 60
    while (shown := tandem("replicas", "--address", address, "--json")).code != 0 and time.monotonic() < end:
        time.sleep(0.05)
    assert shown.code == 0, shown.err
    document: dict[str, Any] = shown.document
    return document


MASTER = {
    "role": "SYNC_MASTER", "epoch": 2, "fenced_by_epoch": 0, "broker_name": "a", "broker_id": 0, "min_offset": 0,
    "max_offset": 5_000_000, "flushed_offset": 4_000_000, "replicated_offset": 4_999_000, "in_sync": 1,
    "replicas": [
        {"identity": "1", "address": "10.0.0.2:4711", "connected": True, "in_sync": True, "acked_offset": 4_999_000,
         "sent_offset": 5_000_000, "lag_bytes": 1_000, "lag_seconds": 0.012, "ack_age_seconds": 0.001,
         "silent_seconds": 0.0},
        {"identity": "2", "address": "10.0.0.3:4711", "connected": False, "in_sync": False, "acked_offset": 1_000,
         "sent_offset": 1_000, "lag_bytes": 4_999_000, "lag_seconds": 90.0, "ack_age_seconds": 91.0,
         "silent_seconds": 0.0},
    ],
}  # fmt: skip


def test_replicas_and_their_lag_in_words(capsys: pytest.CaptureFixture[str]) -> None:
    _say_status(Output(as_json=False), MASTER)
    assert capsys.readouterr().out.splitlines() == [
        "  role      SYNC_MASTER in epoch 2",
        "  broker    a, id 0",
        "  log       0 to 5,000,000, on disk to 4,000,000",
        "  replicas  1 in sync; enough have the log up to 4,999,000",
        "",
        "replica  address        state        acked  lag     lag time  last ack",
        "1        10.0.0.2:4711  in sync  4,999,000  1.0 kB  12 ms     1 ms ago",
        "2        10.0.0.3:4711  gone         1,000  5.0 MB  90.0 s    91.0 s ago",
    ]


def test_a_slave_that_hangs_in_words(capsys: pytest.CaptureFixture[str]) -> None:
    replicas: Any = MASTER["replicas"]
    hangs = {**replicas[0], "lag_bytes": 0, "lag_seconds": 0.0, "silent_seconds": 7.0}
    _say_status(Output(as_json=False), {**MASTER, "replicas": [hangs]})
    assert "in sync, no report for 7.0 s" in capsys.readouterr().out


def test_a_fenced_master_and_a_slave_that_cannot_follow_in_words(capsys: pytest.CaptureFixture[str]) -> None:
    _say_status(Output(as_json=False), {**MASTER, "fenced_by_epoch": 3, "replicas": []})
    assert "fenced by epoch 3: takes no messages" in capsys.readouterr().out
    follower = {"master_address": "10.0.0.1:10912", "state": "REFUSED", "problem": "the logs differ at 17",
                "master_max_offset": 5_001_000, "silent_seconds": 2.0}  # fmt: skip
    slave = {name: value for name, value in MASTER.items() if name not in ("replicas", "in_sync", "replicated_offset")}
    _say_status(Output(as_json=False), {**slave, "role": "SLAVE", "follower": follower})
    told = capsys.readouterr().out
    assert "10.0.0.1:10912: refused: the logs differ at 17" in told
    assert "1.0 kB, last heard of 2.0 s ago" in told


# -- reseed -----------------------------------------------------------------------------------------------------------


def a_store(root: Path, *, has_followed: bool = False) -> Path:
    """What a store leaves, as far as reseed looks."""
    for name in ("commitlog", "consumequeue/t/0", "index", "config"):
        (root / name).mkdir(parents=True)
    (root / "commitlog" / "00000000000000000000").write_bytes(b"log")
    for name in (
        "checkpoint",
        "abort",
        "lock",
        "tandem.manifest",
        "tandem.topics",
        "tandem.groups",
        "tandem.metasync.lock",
        "config/topics.json",
    ):
        (root / name).write_bytes(b"x")
    if has_followed:
        (root / "tandem.replica").write_bytes(b"x")
    return root


def mastership(root: Path) -> Mastership:
    return Mastership(root, LocalDisk(), BrokerRole.ASYNC_MASTER)


def test_a_slave_is_emptied_and_what_is_not_log_stays(tmp_path: Path) -> None:
    root = a_store(tmp_path, has_followed=True)
    done = tandem("reseed", "--data", str(root), "--json")
    assert done.code == 0, done.err
    aside = Path(done.document["moved_to"])
    assert aside.parent == root
    moved = {path.name for path in aside.iterdir()}
    assert moved == {"commitlog", "consumequeue", "index", "checkpoint", "abort", "tandem.manifest", "tandem.replica"}
    assert set(done.document["moved"]) == moved
    assert done.document["moved"][-1] == "commitlog", "until it is moved, reseed can be run again"
    left = {path.name for path in root.iterdir()} - {aside.name}
    assert left == {"config", "lock", "tandem.topics", "tandem.groups", "tandem.epoch", "tandem.metasync.lock"}
    assert mastership(root).role is BrokerRole.SLAVE, "with an empty log it must not become a master"
    assert (aside / "commitlog" / "00000000000000000000").read_bytes() == b"log"


def test_it_says_where_the_old_files_are(tmp_path: Path) -> None:
    done = tandem("reseed", "--data", str(a_store(tmp_path, has_followed=True)))
    assert done.code == 0
    assert "commitlog" in done.out
    assert f"rm -r {tmp_path}/reseeded-" in done.out


def test_a_directory_that_never_followed_is_refused(tmp_path: Path) -> None:
    refused = tandem("reseed", "--data", str(a_store(tmp_path)))
    assert refused.code == 1
    assert refused.err.startswith("tandem: ")
    assert "has never followed a master" in refused.err
    assert "--yes-it-was-a-master" in refused.err
    assert (tmp_path / "commitlog").exists()


def test_a_promoted_masters_directory_is_refused_until_one_insists(tmp_path: Path) -> None:
    root = a_store(tmp_path, has_followed=True)
    mastership(root).promote(BrokerRole.SYNC_MASTER, 7, 3)
    refused = tandem("reseed", "--data", str(root))
    assert refused.code == 1
    assert "is a master's directory: SYNC_MASTER in epoch 7" in refused.err
    assert (root / "commitlog").exists()

    done = tandem("reseed", "--data", str(root), "--yes-it-was-a-master", "--json")
    assert done.code == 0
    assert done.document["epoch"] == 7
    assert mastership(root).role is BrokerRole.SLAVE


def test_a_fenced_master_that_was_demoted_needs_no_insisting(tmp_path: Path) -> None:
    root = a_store(tmp_path)
    mastership(root).demote(2)
    assert tandem("reseed", "--data", str(root)).code == 0
    assert mastership(root).role is BrokerRole.SLAVE


def test_a_running_store_is_left_alone(tmp_path: Path) -> None:
    lock = StoreLock(a_store(tmp_path, has_followed=True), LocalDisk())
    try:
        refused = tandem("reseed", "--data", str(tmp_path))
    finally:
        lock.release()
    assert refused.code == 1
    assert "in use by another process" in refused.err
    assert (tmp_path / "commitlog").exists()


def test_a_directory_without_a_log_is_told_so(tmp_path: Path) -> None:
    refused = tandem("reseed", "--data", str(tmp_path))
    assert refused.code == 1
    assert "is no store directory" in refused.err
    assert not list(tmp_path.iterdir())


def test_an_epoch_file_that_cannot_be_read_stops_it(tmp_path: Path) -> None:
    root = a_store(tmp_path, has_followed=True)
    (root / "tandem.epoch").write_bytes(b"rubbish")
    refused = tandem("reseed", "--data", str(root), "--yes-it-was-a-master")
    assert refused.code == 1
    assert "tandem.epoch cannot be read" in refused.err
    assert (root / "commitlog").exists()
