"""Who calls by access key and signature, what may be done then, and what namespaces keep apart."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import grpc
import pytest

from tandemmq.rocketmq5.v2 import resources_pb2 as pb
from tandemmq.store.fronts.rocketmq5.identity import signature
from tandemmq.store.v1.store_pb2 import ListQueuesRequest
from tests.access_users import access_text
from tests.campaigns import in_campaigns
from tests.contract.rocketmq5.conftest import THROUGH, gateway_before
from tests.contract.rocketmq5.v2_client import V2Client, message
from tests.contract.store_process import StoreProcess

DATE = "20260131T120000Z"
SECRETS = {"producer": "the producer's key", "consumer": "the consumer's key", "nobody": "nobody's key"}


def tandem(*arguments: object) -> str:
    """Runs a command; gives what it says."""
    command = [sys.executable, "-m", "tandemmq.cli.main", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


@pytest.fixture(scope="module")
def access(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An access file, with signing secrets beside it."""
    directory = tmp_path_factory.mktemp("signed")
    file, secret = directory / "access.toml", directory / "secret"
    file.write_text(access_text())
    for user, text in SECRETS.items():
        secret.write_text(text)
        tandem("user", "signing-secret", user, "--secret-file", secret, "--file", file)
    return file


@pytest.fixture(scope="module", params=THROUGH)
def guarded(
    request: pytest.FixtureRequest, transport: str, access: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[StoreProcess]:
    """A store that asks who calls, or a gateway before it that asks too."""
    directory = tmp_path_factory.mktemp(f"guarded-{transport}")
    with StoreProcess(directory / "store", access_file=access) as store:
        if request.param == "store":
            yield store
        else:
            with gateway_before(store, directory / "gateway", access_file=access, **as_peer(directory)) as gateway:
                yield gateway


def as_peer(directory: Path) -> dict[str, object]:
    """Settings of a gateway that may link itself to stores."""
    secret = directory / "peer.secret"
    secret.write_text("the secret")
    secret.chmod(0o600)
    return {"service_user": "peer", "service_secret_file": secret}


def signed(
    store: StoreProcess, user: str, *, secret: str | None = None, region: str = "", upper: bool = False
) -> V2Client:
    """A client that signs as the official ones do."""
    digits = signature(secret or SECRETS[user], DATE).hex()
    header = f"MQv2-HMAC-SHA1 Credential={user}{region}, SignedHeaders=x-mq-date-time, Signature="
    client = V2Client(store.address, x_mq_date_time=DATE)
    client.headers["authorization"] = header + (digits.upper() if upper else digits)
    return client


@pytest.mark.parametrize("upper", [True, False])
@pytest.mark.parametrize("region", ["", "//Rocketmq", "/r1/Rocketmq"])
def test_who_signs_rightly_may_do_what_its_roles_say(guarded: StoreProcess, region: str, upper: bool) -> None:
    with signed(guarded, "producer", region=region, upper=upper) as client:
        assert client.send(message("mine-1")).status.code == pb.OK
        refused = client.send(message("others"))
        assert (refused.status.code, len(refused.entries)) == (pb.FORBIDDEN, 0)
        assert client.route("mine-1").status.code == pb.OK
        assert client.route("others").status.code == pb.FORBIDDEN
        assert [part.status.code for part in client.parts("mine-g", "mine-1")] == [pb.FORBIDDEN]


def test_a_consumer_may_use_its_groups_and_no_others(guarded: StoreProcess) -> None:
    topic = pb.Resource(name="mine-1")
    with signed(guarded, "producer") as producer:
        producer.send(message("mine-1"))
    with signed(guarded, "consumer") as client:
        assert client.send(message("mine-1")).status.code == pb.FORBIDDEN
        for group, code in (("mine-g", pb.OK), ("others-g", pb.FORBIDDEN)):
            name = pb.Resource(name=group)
            asked = client.ask("QueryAssignment", topic=topic, group=name, endpoints=client.endpoints)
            assert asked.status.code == code
            beat = client.ask("Heartbeat", group=name, client_type=pb.PUSH_CONSUMER)
            assert beat.status.code == code
            assert client.ask("NotifyClientTermination", group=name).status.code == code
        for call in ("AckMessage", "ChangeInvisibleDuration", "ForwardMessageToDeadLetterQueue"):
            refused = client.ask(call, group=pb.Resource(name="others-g"), topic=topic)
            assert refused.status.code == pb.FORBIDDEN, call
        for call in ("EndTransaction", "RecallMessage"):
            assert client.ask(call, topic=topic).status.code == pb.FORBIDDEN, call
        stream = client.stream()
        stream.say(client.consumer(pb.PUSH_CONSUMER, "others-g", "mine-1"))
        assert stream.next().status.code == pb.FORBIDDEN


@pytest.mark.slow
def test_a_store_refuses_what_its_own_file_forbids_whatever_a_gateway_lets_pass(access: Path, tmp_path: Path) -> None:
    """Gateways vouch for who calls; the store authorizes."""
    generous = tmp_path / "access.toml"
    generous.write_text(access.read_text().replace('publish = ["mine*"]', 'publish = ["*"]'))
    signing = access.with_name("access.signing.toml")
    generous.with_name(signing.name).touch(0o600)
    generous.with_name(signing.name).write_text(signing.read_text())
    with (
        StoreProcess(tmp_path / "store", access_file=access) as store,
        gateway_before(store, tmp_path / "gateway", access_file=generous, **as_peer(tmp_path)) as gateway,
        signed(gateway, "producer") as client,
    ):
        assert client.send(message("mine-1")).status.code == pb.OK
        assert client.send(message("others")).status.code == pb.FORBIDDEN
        with store.stub() as stub, pytest.raises(grpc.RpcError, match="UNAUTHENTICATED"):
            stub.ListQueues(ListQueuesRequest())


@pytest.mark.slow
@pytest.mark.parametrize("user", ["producer", *in_campaigns("")])
def test_a_gateway_that_may_not_link_itself_reaches_nothing(access: Path, tmp_path: Path, user: str) -> None:
    own = {**as_peer(tmp_path), "service_user": user} if user else {}
    with (
        StoreProcess(tmp_path / "store", access_file=access) as store,
        gateway_before(store, tmp_path / "gateway", access_file=access, **own) as gateway,
        signed(gateway, "producer") as client,
    ):
        assert client.send(message("mine-1"), seconds=30).status.code == pb.HA_NOT_AVAILABLE
        assert any("INTERNAL" in str(event) or "UNAUTHENTICATED" in str(event) for event in gateway.events())


HEADERS = {
    "none": "",
    "empty": "MQv2-HMAC-SHA1 Credential=, SignedHeaders=x-mq-date-time, Signature=",
    "empty in Go": "MQv2-HMAC-SHA1 Credential=//Rocketmq, SignedHeaders=x-mq-date-time, Signature=00",
    "no such user": "MQv2-HMAC-SHA1 Credential=who, SignedHeaders=x-mq-date-time, Signature=00",
    "no signing secret": "MQv2-HMAC-SHA1 Credential=viewer, SignedHeaders=x-mq-date-time, Signature="
    + signature("", DATE).hex(),
    "no hex": "MQv2-HMAC-SHA1 Credential=producer, SignedHeaders=x-mq-date-time, Signature=xyz",
    "another scheme": "Basic cHJvZHVjZXI6eA==",
    "nonsense": "MQv2-HMAC-SHA1 ,,,===,Credential",
    "long": "MQv2-HMAC-SHA1 Credential=" + "x" * 3_000,
}


@pytest.mark.parametrize("what", HEADERS)
def test_who_does_not_sign_rightly_is_nobody(guarded: StoreProcess, what: str) -> None:
    with V2Client(guarded.address, x_mq_date_time=DATE, authorization=HEADERS[what]) as client:
        assert client.send(message("mine-1")).status.code == pb.UNAUTHORIZED
        assert client.route("mine-1").status.code == pb.UNAUTHORIZED
        assert [part.status.code for part in client.parts("mine-g", "mine-1")] == [pb.UNAUTHORIZED]
        with pytest.raises(grpc.RpcError, match="UNAUTHENTICATED"):
            client.stream().next()


def test_a_wrong_secret_or_another_date_is_refused(guarded: StoreProcess) -> None:
    with signed(guarded, "producer", secret="another") as client:
        assert client.send(message("mine-1")).status.code == pb.UNAUTHORIZED
    with signed(guarded, "producer") as client:
        client.headers["x-mq-date-time"] = "20260131T120001Z"
        assert client.send(message("mine-1")).status.code == pb.UNAUTHORIZED


@pytest.mark.slow
def test_the_file_is_for_its_owner_and_follows_its_users(access: Path, tmp_path: Path) -> None:
    file = tmp_path / "access.toml"
    file.write_text(access.read_text())
    signing = tmp_path / "access.signing.toml"
    secret = tandem("user", "signing-secret", "viewer", "--generate", "--file", file).strip()
    assert secret in signing.read_text()
    assert signing.stat().st_mode & 0o777 == 0o600
    tandem("user", "signing-secret", "reader", "--generate", "--file", file)
    tandem("user", "remove", "viewer", "--file", file)
    assert secret not in signing.read_text()
    tandem("user", "signing-secret", "reader", "--remove", "--file", file)
    assert "reader" not in signing.read_text()


@pytest.mark.slow
def test_namespaces_keep_topics_apart(shared_store: StoreProcess) -> None:
    with V2Client(shared_store.address) as plain, V2Client(shared_store.address, x_mq_namespace="ns1") as inside:
        first = inside.send(message("spaced")).entries[0]
        second = plain.send(message("spaced")).entries[0]
        assert (first.status.code, second.status.code) == (pb.OK, pb.OK)
        resource = pb.Resource(resource_namespace="ns1", name="spaced")
        explicit = plain.ask("QueryRoute", topic=resource, endpoints=plain.endpoints)
        assert explicit.message_queues[0].topic == resource
    with shared_store.stub() as stub:
        assert {"ns1%spaced", "spaced"} <= {one.topic for one in stub.ListQueues(ListQueuesRequest()).topics}
