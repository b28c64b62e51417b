"""RocketMQ's own classic clients of 4.9 and 5.3, unmodified, against a store: every feature that they have."""

import json
import os
import subprocess
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from tandemmq.common.wire.remoting.codes import RequestCode
from tests.access_users import access_text
from tests.contract.remoting.classic_client import ClassicClient
from tests.contract.remoting.conftest import classic, port_of
from tests.contract.store_process import StoreProcess
from tests.interop.classic.names import names
from tests.interop.classic.programs import command_of

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


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[StoreProcess]:
    """A store that asks soon about transactions."""
    with classic(tmp_path_factory.mktemp("classic") / "store", **QUICK) as store:
        yield store


def run(store: StoreProcess, version: str, feature: str, *options: str, **environment: str) -> None:
    """Runs one feature of one client on a topic and a group of its own; fails with what it said."""
    number = uuid.uuid4().hex[:8]
    home = ["-Duser.home=" + str(store.directory.parent)]  # it writes its log there
    if feature == "pop":
        set_pop(store, f"group-{number}", f"topic-{number}")
    with names("broker-a", "DefaultCluster", port_of(store), tls=TLS in options) as server:
        command = [*command_of(version, *home, *options), server, feature, f"topic-{number}", f"group-{number}"]
        done = subprocess.run(
            command, env={**os.environ, **environment}, capture_output=True, text=True, timeout=SECONDS, check=False
        )
    said = (done.stdout + done.stderr)[-4_000:]
    assert done.returncode == 0, said
    assert "OK" in done.stdout.splitlines(), said


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


@pytest.mark.parametrize("option", [BINARY, TLS], ids=["binary", "tls"])
@pytest.mark.parametrize("version", VERSIONS)
def test_headers_in_binary_and_connections_with_tls(store: StoreProcess, version: str, option: str) -> None:
    run(store, version, "concurrent", option)


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
    with classic(directory / "store", access_file=access, **QUICK) as store:
        yield store


@pytest.mark.parametrize("version", VERSIONS)
def test_signatures(secured: StoreProcess, version: str) -> None:
    run(secured, version, "retry", ACCESS_KEY="everybody", SECRET_KEY="the signing key")
    run(secured, version, "wrong_key", ACCESS_KEY="everybody", SECRET_KEY="another key")
