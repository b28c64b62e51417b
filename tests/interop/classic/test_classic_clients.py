"""RocketMQ's own classic clients of 4.9 and 5.3, unmodified, against a store: every feature that they have."""

import json
import os
import socket
import subprocess
import threading
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest

from tandemmq.common.wire.remoting.codes import RequestCode
from tests.access_users import access_text
from tests.certificates import Authority
from tests.contract.remoting.classic_client import ClassicClient
from tests.contract.remoting.conftest import classic, port_of
from tests.contract.remoting.test_administration import make_topic
from tests.contract.store_process import StoreProcess
from tests.faults.pair_process import free_port
from tests.interop.classic.mqadmin import Mqadmin
from tests.interop.classic.programs import command_of
from tests.names_process import NamesProcess

pytestmark = [pytest.mark.interop, pytest.mark.slow, pytest.mark.timeout(600)]

SECONDS = 180
VERSIONS = ["4.9.7", "5.3.2"]
FEATURES = [
    "send",
    "batch",
    "large",
    "concurrent",
    "orderly",
    "filter",
    "broadcast",
    "rebalance",
    "resume",
    "retry",
    "dead_letter",
    "orderly_dead_letter",
    "delay",
    "timed",
    "transaction",
    "request",
    "lite_pull",
    "query",
    "pop",
]
NEW = {"timed", "pop"}
"""What only clients of version 5 have."""
BINARY = "-Drocketmq.serialize.type=ROCKETMQ"
TLS = "-Dtls.enable=true"
VIP = "-Dcom.rocketmq.sendMessageWithVIPChannel=true"
QUICK = {
    "transaction_time_out": 1_000,
    "transaction_check_interval": 1_000,
    "max_message_size": 4 << 20,
    "mapped_file_size_commit_log": 64 << 20,
}


@contextmanager
def named(directory: Path, **settings: object) -> Iterator[StoreProcess]:
    """A store that asks soon about transactions, and that clients find by a name server."""
    with (
        NamesProcess(directory / "names") as names,
        classic(directory / "store", namesrv_addr=names.address, broker_ip1="127.0.0.1", **QUICK, **settings) as store,
    ):
        names.until_route("TBW102", {"broker-a": {"0": f"127.0.0.1:{port_of(store)}"}})
        yield store


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[StoreProcess]:
    with named(tmp_path_factory.mktemp("classic")) as store:
        yield store


def run(store: StoreProcess, version: str, feature: str, *options: str) -> None:
    """Runs one feature of one client on a topic and a group of its own; fails with what it said."""
    number = uuid.uuid4().hex[:8]
    with ClassicClient(port_of(store)) as client:
        make_topic(client, f"topic-{number}", read=4, write=4)
    if feature == "pop":
        set_pop(store, f"group-{number}", f"topic-{number}")
    run_on(store, version, feature, f"topic-{number}", *options)


def run_on(store: StoreProcess, version: str, feature: str, topic: str, *options: str, **environment: str) -> None:
    """The same on a topic that is there."""
    command = started_as(store, version, feature, topic, *options)
    done = subprocess.run(
        command, env={**os.environ, **environment}, capture_output=True, text=True, timeout=SECONDS, check=False
    )
    said = (done.stdout + done.stderr)[-4_000:]
    assert done.returncode == 0, said
    assert "OK" in done.stdout.splitlines(), said


def started_as(store: StoreProcess, version: str, feature: str, topic: str, *options: str) -> list[str]:
    """What starts it. Its group is named as the topic is."""
    home = ["-Duser.home=" + str(store.directory.parent)]  # it writes its log there
    group = topic.replace("topic", "group")
    return [*command_of(version, *home, *options), str(store.settings["namesrv_addr"]), feature, topic, group]


def set_pop(store: StoreProcess, group: str, topic: str) -> None:
    """What `mqadmin setConsumeMode` does."""
    body = {"consumerGroup": group, "topic": topic, "mode": "POP", "popShareQueueNum": 0}
    with ClassicClient(port_of(store)) as client:
        client.ask(RequestCode.SET_MESSAGE_REQUEST_MODE, None, json.dumps(body).encode())


@pytest.mark.parametrize("feature", FEATURES)
@pytest.mark.parametrize("version", VERSIONS)
def test_a_feature(store: StoreProcess, version: str, feature: str) -> None:
    if feature in NEW and version < "5":
        pytest.skip("a client of this version has no such call")
    run(store, version, feature)


def taken(store: StoreProcess) -> float:
    """SEND_MESSAGE_V2 requests that the compiled core took."""
    lines = [line for line in store.scrape() if line.startswith('tandem_compiled_calls_total{call="SEND_MESSAGE_V2"')]
    if not lines:
        pytest.skip("the compiled core is not in use")
    return float(lines[0].split()[-1])


@pytest.mark.parametrize("version", VERSIONS)
def test_the_core_takes_what_a_client_sends(store: StoreProcess, version: str) -> None:
    """Twenty messages to four queues: the first of each queue is Python's, which finds the queue's next offset."""
    before = taken(store)
    run(store, version, "concurrent")
    assert taken(store) - before == 16


@pytest.mark.parametrize("version", VERSIONS)
def test_a_reset_by_mqadmin_while_it_consumes(store: StoreProcess, version: str, tmp_path: Path) -> None:
    topic = f"topic-{uuid.uuid4().hex[:8]}"
    words = ["resetOffsetByTime", "-g", topic.replace("topic", "group"), "-t", topic, "-s", "0"]
    with ClassicClient(port_of(store)) as client:
        make_topic(client, topic, read=4, write=4)
    command = started_as(store, version, "reset", topic)
    with (
        Mqadmin("4.9.7", str(store.settings["namesrv_addr"]), tmp_path / "mqadmin") as mqadmin,
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process,
    ):
        assert process.stdout is not None
        timer = threading.Timer(SECONDS, process.kill)
        timer.start()
        said = []
        for line in process.stdout:
            said.append(line)
            if line == "READY\n":
                said.append(mqadmin.run(*words))
        timer.cancel()
    assert process.returncode == 0, said
    assert "OK\n" in said, said


@pytest.mark.parametrize("option", [BINARY, TLS], ids=["binary", "tls"])
@pytest.mark.parametrize("version", VERSIONS)
def test_headers_in_binary_and_connections_with_tls(store: StoreProcess, version: str, option: str) -> None:
    run(store, version, "concurrent", option)


@pytest.mark.parametrize("version", VERSIONS)
def test_certificates_on_both_sides(version: str, tmp_path: Path) -> None:
    """The client verifies name server and store, and shows a certificate, without which the store refuses it."""
    authority = Authority(tmp_path / "authority", "authority")
    server, client = authority.issue("server"), authority.issue("client")
    tls = {"tls_server_cert_path": server.certificate, "tls_server_key_path": server.key}
    names_tls = {**tls, "tls_mode": "PERMISSIVE"}  # the store registers in plain text
    verifying = [TLS, "-Dtls.test.mode.enable=false", "-Dtls.client.authServer=true"]
    verifying += [f"-Dtls.client.trustCertPath={authority.certificate}"]
    shown = [f"-Dtls.client.certPath={client.certificate}", f"-Dtls.client.keyPath={client.key}"]
    given_topics(tmp_path / "store", "topic-tls")
    with (
        NamesProcess(tmp_path / "names", **names_tls) as names,
        classic(
            tmp_path / "store", namesrv_addr=names.address, broker_ip1="127.0.0.1", listen_port=free_port(),
            tls_server_trust_cert_path=authority.certificate, **tls, **QUICK,
        ) as store,
    ):  # fmt: skip
        names.until_route("topic-tls", {"broker-a": {"0": f"127.0.0.1:{port_of(store)}"}})
        run_on(store, version, "concurrent", "topic-tls", *verifying, *shown)
        with pytest.raises(AssertionError, match=r"(?i)connect|closed|send"):
            run_on(store, version, "traced", "topic-tls", *verifying)


@pytest.mark.parametrize("version", VERSIONS)
def test_the_vip_port(version: str, tmp_path: Path) -> None:
    """A client that is told so sends to the port two below the one that its name server tells; a consumer does not."""
    with named(tmp_path, listen_port=free_ports_two_apart()) as store:
        vip = port_of(store) - 2
        with ClassicClient(port_of(store)) as client:
            make_topic(client, "topic-vip", read=4, write=4)
        home = f"-Duser.home={tmp_path}"
        command = [*command_of(version, home, VIP), str(store.settings["namesrv_addr"]), "steady", "topic-vip", "vip"]
        assert store.process is not None
        process = psutil.Process(store.process.pid)
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as java:
            try:
                assert java.stdout is not None
                assert any(line.startswith("SENT") for line in java.stdout)
                reached = {one.laddr.port for one in process.net_connections("tcp") if one.status == "ESTABLISHED"}
                assert vip in reached
                said, _ = java.communicate("\n", timeout=SECONDS)
            finally:
                java.kill()
        assert "FAILED 0" in said.splitlines()
        assert "OK" in said.splitlines(), said


def free_ports_two_apart() -> int:
    """A port that is free, and so is the one two below it."""
    while True:
        port = free_port()
        with socket.socket() as below:
            try:
                below.bind(("127.0.0.1", port - 2))
            except OSError:
                continue
        return port


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[StoreProcess]:
    """A store with users, one of whom signs."""
    directory: Path = tmp_path_factory.mktemp("classic-secured")
    access = directory / "access.toml"
    role = '[roles.everything]\npublish = ["*"]\nsubscribe = ["*"]\ngroups = ["*"]\n'
    access.write_text(access_text(everybody=["everything"]) + role)
    secrets = directory / "access.signing.toml"
    secrets.touch(mode=0o600)
    secrets.write_text('[secrets]\neverybody = "the signing key"\n')
    given_topics(directory / "store", *(name for version in VERSIONS for name in signed_topics(version)))
    with named(directory, access_file=access) as store:
        yield store


def given_topics(root: Path, *names: str) -> None:
    """Topics of a store that is not there yet."""
    (root / "config").mkdir(parents=True)
    table = {"topicConfigTable": {name: {"topicName": name} for name in names}}
    (root / "config" / "topics.json").write_text(json.dumps(table))


def signed_topics(version: str) -> list[str]:
    return [f"topic-{version[0]}-{what}" for what in ("right", "wrong")]


@pytest.mark.parametrize("version", VERSIONS)
def test_signatures(secured: StoreProcess, version: str) -> None:
    right, wrong = signed_topics(version)
    run_on(secured, version, "retry", right, ACCESS_KEY="everybody", SECRET_KEY="the signing key")
    run_on(secured, version, "wrong_key", wrong, ACCESS_KEY="everybody", SECRET_KEY="another key")
