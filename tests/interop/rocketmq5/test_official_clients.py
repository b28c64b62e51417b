"""Official RocketMQ 5 clients from their registries, unmodified, against a store: every feature that they have."""

import json
import os
import signal
import subprocess
import uuid
from collections.abc import Iterator
from pathlib import Path

import grpc
import pytest

from tandemmq.delivery.v1.operations_pb2 import CreateTopicRequest
from tandemmq.delivery.v1.operations_pb2_grpc import OperationsStub
from tandemmq.metadata.v1.metadata_pb2 import TopicConfig
from tests.access_users import access_text
from tests.certificates import Authority
from tests.contract.gateway_process import GatewayProcess
from tests.contract.store_process import StoreProcess
from tests.interop.grpc_clients.programs import command_of
from tests.interop.rocketmq5.flow import LANGUAGES as LANGUAGES_THAT_FLOW
from tests.interop.rocketmq5.flow import flow
from tests.interop.rocketmq5.outages import survives

pytestmark = [pytest.mark.interop, pytest.mark.slow, pytest.mark.timeout(1200)]

SECONDS = 180

LANGUAGES = ["python", "node", "go", "java", "rust"]
FEATURES = [
    "send",
    "simple_consumer",
    "several_messages",
    "tag_filter",
    "redelivery",
    "push_consumer",
    "push_retry",
    "dead_letter",
    "fifo",
    "delay",
    "recall",
    "transaction",
    "orphan",
]

MADE_GROUPS = {"fifo", "dead_letter"}
"""Features for which a language has a group that was made for it."""

LACKS = {("go", "recall"), ("rust", "recall"), ("rust", "push_consumer"), ("rust", "push_retry"), ("rust", "namespace")}
LACKS |= {("rust", "dead_letter")}
LACKS |= {(language, "several_messages") for language in ("python", "node", "go", "java")}
"""What a client has no call for, or no use."""

SECRET = "the signing key"


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[StoreProcess]:
    """A store that asks soon about transactions."""
    directory = tmp_path_factory.mktemp("rocketmq5") / "store"
    groups = {f"fifo-{one}": {"groupName": f"fifo-{one}", "consumeMessageOrderly": True} for one in LANGUAGES}
    names = [f"dead_letter-{one}{through}" for one in LANGUAGES for through in ("", "-gateway")]
    groups |= {name: {"groupName": name, "retryMaxTimes": 1} for name in names}
    (directory / "config").mkdir(parents=True)
    table = {"subscriptionGroupTable": groups, "dataVersion": {"counter": 1, "timestamp": 1}}
    (directory / "config" / "subscriptionGroup.json").write_text(json.dumps(table))
    quick = {"transaction_time_out": 2_000, "transaction_check_interval": 1_000}
    with StoreProcess(directory, max_message_size=4 << 20, mapped_file_size_commit_log=64 << 20, **quick) as store:
        yield store


def run(language: str, address: str, feature: str, group: str = "", topic: str = "", **environment: str) -> None:
    """Runs one feature of one client, mostly on a topic and a group of its own; fails with what it said."""
    number = uuid.uuid4().hex[:8]
    command = [*command_of(f"rocketmq5-{language}"), address, feature]
    command += [topic or f"topic-{number}", group or f"group-{number}"]
    done = subprocess.run(
        command, env={**os.environ, **environment}, capture_output=True, text=True, timeout=SECONDS, check=False
    )
    assert done.returncode == 0, (done.stdout + done.stderr)[-4_000:]
    assert "OK" in done.stdout.splitlines(), done.stdout + done.stderr


@pytest.mark.parametrize("feature", FEATURES)
@pytest.mark.parametrize("language", LANGUAGES)
def test_a_feature(store: StoreProcess, language: str, feature: str) -> None:
    if (language, feature) in LACKS:
        pytest.skip("this client has no such call")
    run(language, store.address, feature, f"{feature}-{language}" if feature in MADE_GROUPS else "")


def taken(store: StoreProcess) -> float:
    """SendMessage calls that the compiled core took."""
    lines = [line for line in store.scrape() if line.startswith('tandem_compiled_calls_total{call="SendMessage"')]
    if not lines:
        pytest.skip("the compiled core is not in use")
    return float(lines[0].split()[-1])


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_core_takes_all_that_a_client_sends(store: StoreProcess, language: str) -> None:
    """To a topic whose queues have had a message each: the client's first run sends five, to four queues."""
    topic = f"taken-{uuid.uuid4().hex[:8]}"
    run(language, store.address, "simple_consumer", group=topic, topic=topic)
    before = taken(store)
    run(language, store.address, "simple_consumer", group=topic, topic=topic)
    assert taken(store) - before == 5


def test_the_highest_priority_comes_first(store: StoreProcess) -> None:
    """Java's is the client that can say one."""
    topic = f"urgent-{uuid.uuid4().hex[:8]}"
    config = TopicConfig(name=topic, read_queues=4, write_queues=4, attributes={"message.type": "PRIORITY"})
    with grpc.insecure_channel(store.address) as channel:
        OperationsStub(channel).CreateTopic(CreateTopicRequest(config=config), timeout=60)
    run("java", store.address, "priority", topic=topic)


@pytest.fixture(scope="module")
def gateway(store: StoreProcess) -> Iterator[GatewayProcess]:
    """A gateway before the store."""
    log = store.directory.with_name("gateway")
    with GatewayProcess(log, {"broker-a": [store.internal]}, max_message_size=4 << 20) as gateway:
        yield gateway


@pytest.mark.parametrize("feature", FEATURES)
@pytest.mark.parametrize("language", ["python", "go"])
def test_a_feature_through_a_gateway(gateway: GatewayProcess, language: str, feature: str) -> None:
    if (language, feature) in LACKS:
        pytest.skip("this client has no such call")
    through = "-gateway" if feature == "dead_letter" else ""
    run(language, gateway.address, feature, f"{feature}-{language}{through}" if feature in MADE_GROUPS else "")


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[StoreProcess]:
    """A store with users, one of whom signs."""
    directory = tmp_path_factory.mktemp("rocketmq5-secured")
    access = directory / "access.toml"
    role = '[roles.everything]\npublish = ["*"]\nsubscribe = ["*"]\ngroups = ["*"]\n'
    access.write_text(access_text(everybody=["everything"]) + role)
    (directory / "access.signing.toml").touch(0o600)
    (directory / "access.signing.toml").write_text(f'[secrets]\neverybody = "{SECRET}"\n')
    with StoreProcess(directory / "store", access_file=access) as store:
        yield store


@pytest.mark.parametrize("language", LANGUAGES)
def test_who_signs_is_let_in_and_nobody_else(secured: StoreProcess, language: str) -> None:
    run(language, secured.address, "simple_consumer", CLIENT_KEY="everybody", CLIENT_SECRET=SECRET)
    run(language, secured.address, "wrong_credentials", CLIENT_KEY="everybody", CLIENT_SECRET="wrong")
    run(language, secured.address, "wrong_credentials")


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_namespace(store: StoreProcess, language: str) -> None:
    if (language, "namespace") in LACKS:
        pytest.skip("this client has no such setting")
    run(language, store.address, "simple_consumer", CLIENT_NAMESPACE="ns1")


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_client_sends_and_consumes_on_after_the_store_was_killed(tmp_path: Path, language: str) -> None:
    with StoreProcess(tmp_path / "store", max_message_size=4 << 20) as store:
        store.settings["grpc_port"] = store.address.rpartition(":")[2]  # it comes back where it was

        def killed() -> None:
            store.restart(signal.SIGKILL)

        survives(language, store.address, SECONDS, {"SENT 15": killed, "SENT 35": killed})


@pytest.mark.parametrize("language", LANGUAGES_THAT_FLOW)
def test_a_steady_flow(tmp_path: Path, language: str) -> None:
    """Ten minutes of it are `make soak ARGS="--clients"`."""
    assert " messages, " in flow(language, tmp_path / "store", seconds=4, rate=10_000_000)


@pytest.mark.parametrize("language", ["python", "node"])
def test_tls_with_a_certificate_that_the_client_trusts(tmp_path: Path, language: str) -> None:
    authority = Authority(tmp_path / "ca", "authority")
    server = authority.issue("store")
    tls = {"tls_server_cert_path": server.certificate, "tls_server_key_path": server.key, "tls_mode": "permissive"}
    with StoreProcess(tmp_path / "store", **tls) as store:
        trusted = {"GRPC_DEFAULT_SSL_ROOTS_FILE_PATH": str(authority.certificate)}
        run(language, store.address, "simple_consumer", CLIENT_TLS="1", **trusted)
        run(language, store.address, "simple_consumer")
