"""`tandem up` with real services: they die and come back, they stop in order, none outlives the command."""

import json
import os
import pty
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import grpc
import pytest

from tandemmq.admin.v1.admin_pb2 import GetClusterRequest
from tandemmq.admin.v1.admin_pb2_grpc import AdminStub
from tandemmq.client import StoreClient
from tandemmq.replication.v1.replication_pb2 import StatusRequest
from tandemmq.replication.v1.replication_pb2_grpc import ReplicationStub
from tandemmq.store.v1 import store_pb2
from tests.campaigns import in_campaigns
from tests.faults.pair_process import free_port
from tests.integration.test_cli import Outcome, tandem
from tests.interop.remoting import Remoting

pytestmark = [pytest.mark.xdist_group("up"), pytest.mark.timeout(400)]

SMALL = ("mappedFileSizeCommitLog=4194304", "maxHashSlotNum=1000", "maxIndexNum=4000")
SERVICES = ("store", "metasync", "replicator")
DEADLINE = 60.0


def until(condition: Callable[[], Any], what: str, seconds: float = DEADLINE) -> Any:
    """Wait for a condition that becomes true; gives what it gave."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        with suppress(grpc.RpcError):
            if found := condition():
                return found
        time.sleep(0.02)
    raise AssertionError(f"{what}: not within {seconds} s")


def is_alive(pid: int) -> bool:
    """Whether a process runs; one that has ended and was not waited for does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


class Up:
    """`tandem up --json` in a process; without an admin, unless the options say otherwise: it is a second quicker."""

    def __init__(self, directory: Path, *options: str) -> None:
        settings = [part for setting in SMALL for part in ("--set", setting)]
        command = [sys.executable, "-m", "tandemmq.cli.main", "up", "--json", "--port", "0", "--data", str(directory)]
        self.process = subprocess.Popen(
            [*command, "--no-admin", *settings, *options], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        self.events: list[dict[str, Any]] = []
        self.log: list[str] = []
        self._threads = [
            threading.Thread(target=self._read, args=(self.process.stdout, self._take_event)),
            threading.Thread(target=self._read, args=(self.process.stderr, self.log.append)),
        ]
        for thread in self._threads:
            thread.start()

    def _read(self, stream: Any, take: Callable[[str], None]) -> None:
        for line in stream:
            take(line.rstrip("\n"))
        stream.close()

    def _take_event(self, line: str) -> None:
        self.events.append(json.loads(line))

    def of(self, kind: str, service: str | None = None, node: str = "a") -> list[dict[str, Any]]:
        return [
            one
            for one in list(self.events)
            if one["event"] == kind and (service is None or (one["service"], one["node"]) == (service, node))
        ]

    def up(self) -> "Up":
        until(lambda: self.of("up") or self.process.poll() is not None, "up")
        assert self.of("up"), self.log[-5:]
        return self

    def pid(self, service: str, node: str = "a") -> int:
        return int(self.of("serving", service, node)[-1]["pid"])

    def pids(self) -> list[int]:
        return [one["pid"] for one in self.of("started")]

    def address(self, what: str, node: str = "a") -> str:
        return str(next(one[what] for one in self.of("up")[0]["nodes"] if one["node"] == node))

    def replace_killed(self, service: str, node: str = "a") -> None:
        """Kill a service's process and wait until all in it serve again."""
        pid = self.pid(service, node)
        killed = {one["service"] for one in self.of("serving") if one["pid"] == pid}
        os.kill(pid, signal.SIGKILL)

        def is_back() -> bool:
            return all(self.pid(one, node) != pid for one in killed)

        until(is_back, f"{node} {service}, and what shares its process, is back")

    def end(self, number: int = signal.SIGTERM) -> int:
        self.process.send_signal(number)
        return self.wait()

    def wait(self) -> int:
        code = self.process.wait(60)
        for thread in self._threads:
            thread.join(60)
        return code


@contextmanager
def running(directory: Path, *options: str) -> Iterator[Up]:
    one = Up(directory, *options)
    try:
        yield one.up()
    finally:
        if one.process.poll() is None:
            one.end()
        for pid in one.pids():
            if is_alive(pid):
                os.kill(pid, signal.SIGKILL)
        one.wait()


def status(up: Up, node: str) -> Any:
    """What a replicator says of its node, once it has its link to the store."""
    with grpc.insecure_channel(up.address("replicator", node)) as channel:
        end = time.monotonic() + 30
        while True:
            try:
                return ReplicationStub(channel).Status(StatusRequest(), timeout=30)
            except grpc.RpcError as error:
                if error.code() is not grpc.StatusCode.UNAVAILABLE or time.monotonic() >= end:
                    raise
                time.sleep(0.05)


def in_sync(up: Up) -> bool:
    master, slave = status(up, "a"), status(up, "b")
    return slave.max_offset == master.max_offset and any(
        one.connected and one.acked_offset >= master.max_offset for one in master.replicas
    )


# -- one node ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("options", [("--processes",), *in_campaigns((), ("--single-process",))])
def test_services_die_and_come_back_with_the_messages_and_stop_in_order(
    options: tuple[str, ...], tmp_path: Path
) -> None:
    """Those that share a process die together."""
    with running(tmp_path, *options) as up:
        with StoreClient(up.address("store")) as client:
            client.send("orders", b"one")
        for service in SERVICES:
            up.replace_killed(service)
        assert {one["how"] for one in up.of("died")} == {"SIGKILL"}
        assert {one["address"] for one in up.of("serving", "store")} == {up.address("store")}
        with StoreClient(up.address("store")) as client:
            pulled = [record for queue in range(4) for record in client.pull("orders", queue, 0).records]
        assert [record.body for record in pulled] == [b"one"]
        assert up.end(signal.SIGINT) == 0
        assert [one["service"] for one in up.of("ended")] == ["replicator", "store", "metasync"]
        assert {one["how"] for one in up.of("ended")} == {"exit code 0"}
        assert not any(map(is_alive, up.pids()))
        assert up.events[-1] == {"event": "stopped"}


@pytest.mark.slow
def test_the_log_is_one_and_says_who_said_it(tmp_path: Path) -> None:
    with running(tmp_path) as up:
        up.end()
        told = [json.loads(line) for line in up.log]
    assert {(one["node"], one["service"]) for one in told} == {("a", service) for service in SERVICES}
    assert any(one["event"] == "store open" for one in told)
    worries = [one["event"] for one in told if one.get("level") not in ("info", None)]
    assert not set(worries) - {"peer is away"}, "which may be: both processes start at once"


@pytest.mark.slow
def test_an_admin_looks_after_both_nodes_and_comes_back(tmp_path: Path) -> None:
    with running(tmp_path, "--slave", "--admin") as up:
        up.replace_killed("admin")
        (told,) = up.of("up")
        assert told["console"] == up.of("serving", "admin")[-1]["console"]
        with urllib.request.urlopen(told["console"], timeout=60) as page:
            assert page.status == 200

        def services() -> list[tuple[str, int, bool]]:
            with grpc.insecure_channel(up.address("admin")) as channel:
                nodes = AdminStub(channel).GetCluster(GetClusterRequest(), timeout=60).nodes
            return [(one.name, len(one.services), all(each.answers for each in one.services)) for one in nodes]

        until(lambda: services() == [("a", 3, True), ("b", 3, True)], "all services answer")
        assert up.end(signal.SIGINT) == 0
        ended = [(one["node"], one["service"]) for one in up.of("ended")]
        assert [service for node, service in ended if node == "a"] == ["replicator", "store", "admin", "metasync"]
        assert {one["how"] for one in up.of("ended")} == {"exit code 0"}
        assert not any(map(is_alive, up.pids()))


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGHUP])
def test_no_service_outlives_the_supervisor(number: int, tmp_path: Path) -> None:
    with running(tmp_path, "--slave") as up:
        pids = up.pids()
        assert len(set(pids)) == 4
        assert len(pids) == 6
        up.end(number)
        until(lambda: not any(map(is_alive, pids)), "all services are gone")


@pytest.mark.slow
def test_services_of_a_killed_supervisor_close_their_files(tmp_path: Path) -> None:
    """SIGTERM is what the kernel sends them, not SIGKILL: the next start finds a store that was closed."""
    with running(tmp_path) as up:
        with StoreClient(up.address("store")) as client:
            client.send("orders", b"one")
        pids = up.pids()
        up.end(signal.SIGKILL)
        until(lambda: not any(map(is_alive, pids)), "all services are gone")
    with running(tmp_path) as again:
        assert again.of("serving", "store")[0]["recovery"]["clean_exit"] is True


@pytest.mark.slow
def test_a_second_signal_kills(tmp_path: Path) -> None:
    with running(tmp_path) as up:
        store = up.pid("store")
        os.kill(store, signal.SIGSTOP)  # it will not hear SIGTERM
        # At the same moment, as `timeout` sends it: not a second one. Both wait until the process goes on, so that it
        # hears them together, however long this takes.
        up.process.send_signal(signal.SIGSTOP)
        up.process.send_signal(signal.SIGTERM)
        up.process.send_signal(signal.SIGINT)
        up.process.send_signal(signal.SIGCONT)
        until(lambda: up.of("stopping"), "stopping")
        time.sleep(0.6)
        assert up.process.poll() is None
        assert is_alive(store)
        up.process.send_signal(signal.SIGTERM)
        assert up.wait() == 0
        assert not is_alive(store)


def take_terminal() -> None:
    """Make stdin the controlling terminal of a new session."""
    os.close(os.open(os.ttyname(0), os.O_RDWR))


@pytest.mark.slow
def test_when_nobody_reads_the_events_any_more_it_stops_cleanly(tmp_path: Path) -> None:
    settings = [part for setting in SMALL for part in ("--set", setting)]
    command = [sys.executable, "-m", "tandemmq.cli.main", "up", "--json", "--port", "0", "--data", str(tmp_path)]
    process = subprocess.Popen([*command, *settings], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stderr is not None
    assert json.loads(process.stdout.readline())["event"] == "started"
    process.stdout.close()
    log = process.stderr.read()
    process.stderr.close()
    assert process.wait(60) == 0
    assert "Traceback" not in log
    assert not list(tmp_path.glob("abort")), "the store, if it had begun, was closed"


@pytest.mark.slow
def test_ctrl_c_in_a_terminal_reaches_the_supervisor_alone(tmp_path: Path) -> None:
    """The terminal sends SIGINT to every process of its session: the services have sessions of their own."""
    ours, theirs = pty.openpty()
    settings = [part for setting in SMALL for part in ("--set", setting)]
    command = [sys.executable, "-m", "tandemmq.cli.main", "up", "--port", "0", "--data", str(tmp_path), *settings]
    process = subprocess.Popen(
        command, stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True,
        env={**os.environ, "TERM": "xterm"}, preexec_fn=take_terminal,  # noqa: PLW1509
    )  # fmt: skip
    os.close(theirs)
    told = b""
    typed = False
    with suppress(OSError):  # the end of a terminal
        while data := os.read(ours, 65536):
            told += data
            if not typed and b"Ctrl-C stops everything" in told:
                os.write(ours, b"\x03")
                typed = True
    os.close(ours)
    assert process.wait(60) == 0
    text = told.decode()
    assert "The node is up after" in text
    assert "SIGINT: stopping" in text
    assert "Everything has stopped." in text
    assert "\x1b[32ma store" in text, "colours on a terminal"
    assert " ended with " not in text, "each service stopped cleanly"


def test_a_port_that_is_taken_is_told_before_anything_starts(tmp_path: Path) -> None:
    with socket.socket() as somebody:
        somebody.bind(("127.0.0.1", free_port()))
        somebody.listen(1)
        port = somebody.getsockname()[1]
        refused = tandem("up", "--data", str(tmp_path / "data"), "--port", str(port - 1), "--no-admin")
    assert refused.code == 1
    assert refused.err.startswith("tandem: ")
    assert f"{port}" in refused.err
    assert "a metasync" in refused.err
    assert not (tmp_path / "data").exists()


@pytest.mark.slow
def test_a_value_that_a_service_refuses_ends_it_with_the_reason(tmp_path: Path) -> None:
    refused = tandem("up", "--data", str(tmp_path), "--port", "0", "--set", "flushDiskType=SOMETIMES", "--json")
    assert refused.code == 2
    message = json.loads(refused.err.splitlines()[-1])["error"]["message"]
    assert message.startswith("a store and replicator did not start (exit code 2): flushDiskType=SOMETIMES")
    assert "ASYNC_FLUSH" in message


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--set", "grpcPort=1"), "grpcPort is chosen by the node itself"),
        (("--set", "haTransferBatchsize=1"), "did you mean haTransferBatchSize?"),
        (("--set", "brokerRole=SLAVE"), "the first node is a master"),
        (("--port", "65000"), "65000 is no base"),
    ],
)
def test_options_that_do_not_go_together(options: tuple[str, ...], said: str, tmp_path: Path) -> None:
    refused = tandem("up", "--data", str(tmp_path), *options)
    assert refused.code == 2
    assert said in refused.err
    assert len(refused.err.splitlines()) == 1


def test_processes_cannot_be_many_and_one(tmp_path: Path) -> None:
    refused = tandem("up", "--data", str(tmp_path), "--processes", "--single-process")
    assert refused.code == 2
    assert "one of the two" in refused.err


def test_a_node_takes_two_processes_and_little_memory(tmp_path: Path) -> None:
    with running(tmp_path, "--admin") as up:
        pids = {service: up.pid(service) for service in (*SERVICES, "admin")}
        assert pids["store"] == pids["replicator"]
        assert pids["metasync"] == pids["admin"]
        memory = sum(anonymous_bytes(pid) for pid in (up.process.pid, *set(pids.values())))
        assert memory < 120 << 20
        ports = {one["metrics"] for one in up.of("serving")}
        assert len(ports) == 4, "each has its own metrics, as if it were alone"
        for address in ports:
            with urllib.request.urlopen(address, timeout=60) as page:
                assert b"tandem_" in page.read()


def anonymous_bytes(pid: int) -> int:
    """What a process has for itself: not the files and libraries that are mapped."""
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    return next(int(line.split()[1]) << 10 for line in lines if line.startswith("Pss_Anon:"))


@contextmanager
def store_alone(directory: Path) -> Iterator[str]:
    """`tandem serve store` on a directory, with the settings that `running` gives; its address."""
    given = (*SMALL, "grpcPort=0", "internalPort=0", "metricsPort=0", "remotingMode=off")
    settings = [part for setting in given for part in ("--set", setting)]
    command = [sys.executable, "-m", "tandemmq.cli.main", "store", "--json", "--data", str(directory), *settings]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        assert process.stdout is not None
        yield json.loads(process.stdout.readline())["address"]
        process.terminate()


@pytest.mark.slow
def test_the_directory_of_a_store_becomes_a_node_and_then_a_pair(tmp_path: Path) -> None:
    with store_alone(tmp_path) as address, StoreClient(address) as client:
        first = client.send("orders", b"to a store alone")
    with running(tmp_path) as up, StoreClient(up.address("store")) as client:
        assert client.view(first.message_id).body == b"to a store alone"
    with running(tmp_path, "--slave") as up:
        until(lambda: in_sync(up), "the slave follows")
        with StoreClient(up.address("store", "b")) as client:
            assert client.view(first.message_id).body == b"to a store alone"
    for directory in (tmp_path, tmp_path / "b"):
        index = ("--set", "maxHashSlotNum=1000", "--set", "maxIndexNum=4000")
        for command in (("inspect",), ("audit",), ("rebuild", "--master", "processes", *index)):
            done = tandem(*command, str(directory), "--json")
            assert done.code == 0, (command, done.err)


@pytest.mark.slow
def test_a_broker_conf_serves_all_services(tmp_path: Path) -> None:
    (tmp_path / "broker.conf").write_text(
        "brokerName=node-a\nflushDiskType=SYNC_FLUSH\nhaTransferBatchSize=65536\nmetasyncInterval=5000\n"
        "namesrvAddr=127.0.0.1:9876\n"
    )
    with running(tmp_path, "--config", str(tmp_path / "broker.conf")) as up:
        assert up.of("serving", "store")[0]["flush_disk_type"] == "SYNC_FLUSH"
        assert status(up, "a").identity.broker_name == "node-a"


# -- two nodes --------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_slave_follows_and_everything_heals(tmp_path: Path) -> None:
    with running(tmp_path, "--slave") as up, StoreClient(up.address("store")) as client:
        until(lambda: in_sync(up), "the slave follows")
        assert status(up, "a").identity.role != status(up, "b").identity.role
        receipts = [client.send("orders", b"%d" % number) for number in range(20)]
        for node, service in (("b", "store"), ("b", "replicator"), ("a", "replicator")):
            up.replace_killed(service, node)
            until(lambda: in_sync(up), f"the slave follows again after {node} {service} was killed")
            receipts.append(client.send("orders", b"after"))
        until(lambda: in_sync(up), "the slave has the last one too")
        with StoreClient(up.address("store", "b")) as slave:
            for receipt in receipts:
                assert slave.view(receipt.message_id).unique_key == receipt.unique_key
        shown = tandem("replicas", "--address", up.address("replicator"), "--json")
        assert shown.code == 0
        assert shown.document["role"] == "SYNC_MASTER"
        assert [one["in_sync"] for one in shown.document["replicas"] if one["connected"]] == [True]
        assert up.end() == 0
    for kind in ("commitlog", "consumequeue"):
        ours = {path.relative_to(tmp_path): path for path in (tmp_path / kind).rglob("*")}
        theirs = {path.relative_to(tmp_path / "b"): path for path in (tmp_path / "b" / kind).rglob("*")}
        assert ours.keys() == theirs.keys()
        assert all(path.is_dir() or path.read_bytes() == theirs[name].read_bytes() for name, path in ours.items())


@pytest.mark.slow
def test_promotion_by_hand_and_the_old_master_as_a_slave(tmp_path: Path) -> None:
    """The whole procedure with the commands that the documentation tells."""
    with running(tmp_path, "--slave") as up:
        until(lambda: in_sync(up), "the slave follows")
        with StoreClient(up.address("store")) as client:
            first = client.send("orders", b"before")
        until(lambda: in_sync(up), "the slave has it")
        of_slave = ("--address", up.address("replicator", "b"))

        promoted = tandem("promote", *of_slave, "--json")
        assert promoted.code == 0, promoted.err
        assert promoted.document["role"] == "SYNC_MASTER"
        assert promoted.document["epoch"] == 2
        assert promoted.document["steps"]
        with StoreClient(up.address("store")) as client, pytest.raises(Exception, match="newer master|epoch|fenced"):
            client.send("orders", b"to the old one")

        followed = tandem("follow", "--address", up.address("replicator"), "--json")
        assert followed.code == 0, followed.err
        assert followed.document["role"] == "SLAVE"
        until(lambda: any(one.in_sync and one.connected for one in status(up, "b").replicas), "the old one follows")
        with StoreClient(up.address("store", "b")) as client:
            second = client.send("orders", b"after")
        with StoreClient(up.address("store")) as old:
            for receipt in (first, second):
                until(lambda r=receipt: old.view(r.message_id).unique_key == r.unique_key, "it has it")  # type: ignore[misc]
        assert up.end() == 0

    with running(tmp_path, "--slave") as up, StoreClient(up.address("store", "b")) as client:
        until(lambda: any(one.in_sync and one.connected for one in status(up, "b").replicas), "roles are kept")
        assert status(up, "a").follower.master_address == up.address("ha", "b")
        until(lambda: client.send("orders", b"again").status == store_pb2.PUT_OK, "on both nodes")


# -- reseed -----------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_slave_that_was_reseeded_takes_the_whole_history_anew(tmp_path: Path) -> None:
    with running(tmp_path, "--slave") as up, StoreClient(up.address("store")) as client:
        until(lambda: in_sync(up), "the slave follows")
        receipt = client.send("orders", b"one")
        until(lambda: in_sync(up), "the slave has it")
        refused = reseed(tmp_path / "b")
        assert refused.code == 1
        assert "is in use by another process" in refused.err
        assert up.end() == 0

    done = reseed(tmp_path / "b", "--json")
    assert done.code == 0, done.err
    aside = Path(done.document["moved_to"])
    assert {"commitlog", "consumequeue", "index", "checkpoint"} <= set(done.document["moved"])
    assert (aside / "commitlog").is_dir()
    assert not (tmp_path / "b" / "commitlog").exists()
    assert (tmp_path / "b" / "config").is_dir()

    with running(tmp_path, "--slave") as up:
        until(lambda: in_sync(up), "the slave follows again")
        with StoreClient(up.address("store", "b")) as slave:
            assert slave.view(receipt.message_id).body == b"one"


def reseed(directory: Path, *options: str) -> Outcome:
    return tandem("reseed", "--data", str(directory), *options)


@pytest.mark.slow
def test_a_name_server_leads_classic_clients_to_whoever_is_master(tmp_path: Path) -> None:
    """Both nodes register; after the promotion of the slave the master has another address."""
    with running(tmp_path, "--slave", "--names") as up:
        names = int(up.address("names").rpartition(":")[2])

        def route() -> dict[str, str]:
            with Remoting(names) as remoting:
                answer = remoting.call(105, {"topic": "TBW102"})
            brokers = [] if answer.code else json.loads(answer.body)["brokerDatas"]
            return dict(brokers[0]["brokerAddrs"]) if brokers else {}

        until(lambda: route().keys() == {"0", "1"}, "both register")
        master, slave = route()["0"], route()["1"]
        assert master == up.address("remoting")
        with StoreClient(up.address("store")) as client:
            client.send("orders", b"before")
        until(lambda: in_sync(up), "the slave has it")
        assert tandem("promote", "--address", up.address("replicator", "b"), "--json").code == 0
        until(lambda: route() == {"0": slave}, "the promoted slave is broker 0, and the old master is none")
        assert tandem("follow", "--address", up.address("replicator"), "--json").code == 0
        until(lambda: route() == {"0": slave, "1": master}, "the old master is its slave")
        assert up.end() == 0
        assert [one["service"] for one in up.of("ended") if one["node"] == "a"][-1] == "names"
