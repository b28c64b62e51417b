"""What people get wrong, and what they are told: one line that says what is wrong and what to do, and the exit code.

Most run in this process, by the same `main` that a terminal calls; what starts a service has a process of its own.
"""

import json
import os
import socket
import socketserver
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tandemmq.cli import main as command
from tests.integration.test_cli import Outcome, RunningStore, tandem

pytestmark = [pytest.mark.xdist_group("cli"), pytest.mark.timeout(300)]

NEVER_SAID = (
    "Traceback",
    "grpc",
    "gRPC status",
    "StatusCode",
    "UNAVAILABLE",
    "UNIMPLEMENTED",
    "INVALID_ARGUMENT",
    "Errno",
)
"""Words that no person's error has."""

NOBODY = "127.0.0.1:1"


@dataclass(frozen=True)
class Mistake:
    """`line` is what is typed: {store} is the address of a store that runs, {metrics} and {classic} where it serves
    metrics and classic clients, {data} its directory, {file} a file, {empty} an empty directory, {missing} nothing,
    {taken} a port that somebody has, {silent} where somebody ends each connection."""

    line: str
    code: int
    said: tuple[str, ...]
    starts: bool = False
    """It gets as far as starting a service: in a process of its own."""


def wrong(line: str, *said: str) -> Mistake:
    """Of the command line or a setting."""
    return Mistake(line, 2, said)


def failed(line: str, *said: str) -> Mistake:
    """Of the world."""
    return Mistake(line, 1, said)


def no_start(line: str, *said: str) -> Mistake:
    """A service that does not come up."""
    return Mistake(line, 1, said, starts=True)


MISTAKES = [
    wrong("sned orders x", "no such command 'sned'", "send"),
    wrong("topic frobnicate", "no such command 'frobnicate'", "tandem topic -h"),
    wrong("send", "missing argument 'TOPIC'", "tandem send -h"),
    wrong("send orders x --queue one", "--queue", "a whole number"),
    wrong("send orders x --delay 10", "10 of what?", "10s, 10m"),
    wrong("send orders x --at yesterday", "is no time", "2026-01-31T12:00"),
    wrong("send orders --file {missing}", "{missing}: No such file"),
    wrong("send orders x --user ann", "no such option: --user"),
    wrong("send orders x --address http://{store}", "'http://{store}' is no address", "write it as HOST:PORT"),
    wrong("send orders x --address localhost", "write it as HOST:PORT, as in 127.0.0.1:8081"),
    wrong("send orders x --address localhost:99999", "'localhost:99999' is no address"),
    failed(f"send orders x --address {NOBODY}", f"no store answers at {NOBODY}", "`tandem up` starts one"),
    failed("send no/such x --address {store}", "'no/such'", "other characters than a-z"),
    failed("send orders x --queue 99 --address {store}", "4 write queues", "no queue 99"),
    failed("pull nothing --address {store}", "no topic nothing"),
    wrong("pull orders --offset soon --address {store}", "'soon' is no place in a queue", "a queue offset", "a time:"),
    wrong("pull orders --offset -3 --address {store}", "'-3' is no place in a queue"),
    wrong("send orders one espresso --address {store}", "too many words", "in quotes", "(espresso)"),
    failed("view Zzz --address {store}", "32 or 56 characters: 'Zzz'"),
    failed("view 7F00000100002A9F00000000000FFFFF --address {store}", "No message begins at log offset 1,048,575"),
    wrong("query orders", "give one of --key and --unique-key"),
    failed("offsets nothing --address {store}", "no topic nothing"),
    wrong("worker orders g orders --address {store}", "MODULE:FUNCTION"),
    failed("consume bad/group orders --address {store}", "'bad/group' is no name"),
    wrong("consume billing orders --address here,{store}", "'here' is no address of a store", "HOST:PORT"),
    wrong("bench --address here,{store}", "'here' is no address of a store"),
    failed("recall orders nonsense --address {store}", "recall handle cannot be read"),
    failed(f"group list --address {NOBODY}", f"no admin answers at {NOBODY}", "`tandem up`"),
    failed("send orders x --address {metrics}", "at {metrics} a web server (such as the console) answers", "--address"),
    failed("group list --address {metrics}", "a web server (such as the console) answers, and an admin is wanted"),
    failed(
        "send orders x --address {classic}", "at {classic} a port for RocketMQ's classic clients answers", "a store"
    ),
    failed("send orders x --address {silent}", "no store answers at {silent}"),
    failed("send orders x --address a..b:1", "no store answers at a..b:1"),
    failed("topic list --address {store}", "a store answers, and an admin is wanted", "127.0.0.1:8083"),
    failed("replicas --address {store}", "a store answers, and a replicator is wanted", "127.0.0.1:8084"),
    failed("topic delete orders", "Nothing was done", "--yes"),
    wrong("promote --role KING", "'KING' is not one of 'sync_master', 'async_master'"),
    wrong("follow nohost", "'nohost' is no address", "127.0.0.1:10912"),
    failed("inspect {missing}", "{missing} is no store directory"),
    failed("inspect {file}", "{file} is no store directory"),
    failed("rebuild {empty}", "{empty} holds no commit log", "storePathRootDir"),
    failed("rebuild {data}", "A broker runs on {data}", "--running", "stop it first"),
    wrong("rebuild {data} --running nowhere", "'nowhere' is not HOST:PORT"),
    wrong("cluster bundle {missing}/b.zip", "{missing} is no directory"),
    wrong("audit", "say which store, or --pair"),
    failed("audit {empty}", "{empty} holds no commit log"),
    wrong("export {data} {file}", "{file} is no directory"),
    wrong("export {data} {empty} --mode replace", "no mode 'replace'", "error, append, overwrite"),
    wrong("export {data} {empty} --columns price --master processes", "no column 'price'", "queue_offset"),
    wrong("export {data} s3a://bucket/x --master processes", "no directory of this machine", "--master"),
    failed("accept-loss --data {missing}", "{missing} is no store directory"),
    failed("reseed --data {empty}", "{empty} is no store directory"),
    wrong("store --set flushDisktype=SYNC_FLUSH", "unknown setting flushDisktype", "did you mean flushDiskType?"),
    wrong("store --set flushDiskType=SOMETIMES", "ASYNC_FLUSH, SYNC_FLUSH"),
    wrong("store --set flushDiskType", "'flushDiskType' is not KEY=VALUE"),
    wrong("store --config {missing}", "cannot read settings file {missing}: No such file"),
    wrong("store --set listenPort=8081", "listenPort=8081", "classic clients", "gRPC clients", "grpcPort"),
    wrong("store --set port=9000", "grpcPort is for gRPC clients", "listenPort is for RocketMQ's classic clients"),
    wrong("names --set listenPort=9876", "namesPort"),
    wrong("replicator --set listenPort=10911", "it is a setting of: store"),
    wrong("admin --set consoleHost=0.0.0.0", "consoleHost", "accessFile"),
    wrong("up --data {file}", "{file} is a file", "a directory"),
    wrong("up --set grpcPort=9000", "grpcPort is chosen by the node itself", "--port"),
    wrong("up --port 70000", "70000 is no base", "1 to 62704"),
    wrong("up --processes --single-process", "one of the two"),
    wrong("up --host=", "an address is wanted", "0.0.0.0"),
    wrong("up --host 192.0.2.1", "192.0.2.1 is no address of this machine", "0.0.0.0"),
    wrong("completion tcsh", "'tcsh' is not one of 'bash', 'zsh', 'fish'"),
    wrong("user add ann", "--file", "TANDEM_ACCESS_FILE"),
    wrong("--user ann send orders x", "TANDEM_SECRET_FILE is missing"),
    wrong("--tls-ca {missing} send orders x", "{missing}: No such file"),
    failed("--context prod send orders x", "there is no context prod", "`tandem context add`"),
    failed("context use prod", "there is no context prod"),
    wrong("context add prod --server nohost", "write it as HOST:PORT"),
    wrong("context add prod --server h:1 --user ann", "--user and --secret-file go together"),
    no_start("store --data {data}", "{data} is in use by another process", "storePathRootDir"),
    no_start("store --data {file}", "{file}", "cannot be opened", "another directory"),
    no_start("store --data {empty} --set grpcPort={taken}", "cannot serve gRPC on 127.0.0.1:{taken} (grpcPort)"),
    no_start("store --data {empty} --set metricsPort={taken}", "cannot serve metrics", "metricsPort"),
    no_start("store --data {empty} --set internalPort={taken}", "127.0.0.1:{taken} (internalPort)"),
    no_start("up --data {empty} --port {taken} --no-admin", "{taken} (a store)", "--port"),
]

FREE_PORTS = ("grpcPort=0", "metricsPort=0", "internalPort=0", "remotingMode=OFF")
"""Of a store that is started by mistake; what the line itself says comes after them, and wins."""


@pytest.fixture(scope="module")
def classic_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory, classic_port: int) -> Iterator[RunningStore]:
    running = RunningStore(tmp_path_factory.mktemp("mistakes") / "store", f"listenPort={classic_port}")
    assert running("send", "orders", "one").code == 0
    yield running
    running.stop()


class _Silent(socketserver.BaseRequestHandler):
    """Ends each connection, as what speaks another protocol does."""

    def handle(self) -> None:
        self.request.recv(1)


@pytest.fixture(scope="module")
def silent() -> Iterator[str]:
    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), _Silent) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"127.0.0.1:{server.server_address[1]}"
        server.shutdown()


@pytest.fixture
def known(store: RunningStore, classic_port: int, silent: str, tmp_path: Path) -> Iterator[dict[str, str]]:
    """What stands for the names in a line."""
    (tmp_path / "file").touch()
    (tmp_path / "empty").mkdir()
    with socket.socket() as somebody:
        somebody.bind(("127.0.0.1", 0))
        somebody.listen(1)
        yield {
            "store": store.serving["address"],
            "metrics": store.serving["metrics"].removeprefix("http://").removesuffix("/metrics"),
            "classic": f"127.0.0.1:{classic_port}",
            "silent": silent,
            "data": str(store.directory),
            "file": str(tmp_path / "file"),
            "empty": str(tmp_path / "empty"),
            "missing": str(tmp_path / "missing"),
            "taken": str(somebody.getsockname()[1]),
        }


def typed(words: list[str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Outcome:
    """The command in this process, with an environment that is its own."""
    before = dict(os.environ)
    monkeypatch.setattr(sys, "argv", ["tandem", *words])
    monkeypatch.setattr(sys, "stdin", open(os.devnull))  # noqa: SIM115 - closed with the test
    capsys.readouterr()
    try:
        with pytest.raises(SystemExit) as ended:
            command.main()
    finally:
        sys.stdin.close()
        os.environ.clear()
        os.environ.update(before)
    told = capsys.readouterr()
    assert isinstance(ended.value.code, int)
    return Outcome(ended.value.code, told.out, told.err)


@pytest.mark.parametrize("mistake", MISTAKES, ids=lambda mistake: mistake.line)
def test_a_mistake_is_told_in_one_line_with_what_to_do(
    mistake: Mistake,
    known: dict[str, str],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("TANDEM_CONTEXTS_FILE", str(tmp_path / "contexts.json"))
    words = mistake.line.format(**known).split()
    if mistake.starts:
        first = [part for one in FREE_PORTS for part in ("--set", one)] if words[0] == "store" else []
        told = tandem(words[0], *first, *words[1:])
    else:
        told = typed(words, capsys, monkeypatch)
    assert told.code == mistake.code, told
    assert told.out == ""
    assert told.err.startswith("tandem: ")
    assert len(told.err.splitlines()) == 1, told.err
    for said in mistake.said:
        assert said.format(**known) in told.err
    for word in NEVER_SAID:
        assert word not in told.err.replace("gRPC clients", "").replace("serve gRPC", "").replace("grpcPort", "")


def test_there_are_forty() -> None:
    assert len(MISTAKES) >= 40


def test_a_wrong_command_line_is_json_with_json(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    told = typed(["send", "orders", "x", "--queue", "one", "--json"], capsys, monkeypatch)
    assert told.code == 2
    assert "a whole number" in json.loads(told.err)["error"]["message"]
