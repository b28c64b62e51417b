"""`tandem topic create` and `tandem group create`, one call each: on a store alone, on a node, and on a pair."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import grpc
import pytest
from typer.testing import CliRunner

from tandemmq.cli.main import app
from tandemmq.cli.talk.failures import CallFailed
from tandemmq.client import StoreClient
from tandemmq.delivery.v1 import delivery_pb2 as pb
from tandemmq.delivery.v1.delivery_pb2_grpc import DeliveryStub
from tests.contract.store_process import StoreProcess
from tests.contract.test_delivery import receive_all
from tests.faults.pair_process import free_port
from tests.integration.test_up import running

pytestmark = [pytest.mark.xdist_group("up"), pytest.mark.timeout(400)]

Run = Callable[..., Any]


@pytest.fixture
def tandem(monkeypatch: pytest.MonkeyPatch) -> Run:
    monkeypatch.delenv("TANDEM_ADMIN_ADDRESS", raising=False)
    return lambda *arguments: CliRunner().invoke(app, arguments)


def make_both(tandem: Run, *where: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """A topic and a group, one call each, as the issue has it."""
    topic = tandem("topic", "create", "climbs", "--queues", "8", "--type", "FIFO", "--json", *where)
    assert topic.exit_code == 0, topic.output
    group = tandem("group", "create", "climbers", "--fifo", "--retries", "2", "--json", *where)
    assert group.exit_code == 0, group.output
    return json.loads(topic.stdout)["topics"][0]["config"], json.loads(group.stdout)["groups"][0]["config"]


def check_usable(store: str, topic: dict[str, Any], group: dict[str, Any]) -> None:
    """At once: eight queues, in order by message group, three deliveries, and then the dead letters."""
    assert (topic["read_queues"], topic["write_queues"]) == (8, 8)
    assert topic["attributes"] == {"message.type": "FIFO"}
    assert (group["consume_message_orderly"], group["retry_max_times"]) == (True, 2)
    with StoreClient(store) as client, grpc.insecure_channel(store) as channel:
        delivery = DeliveryStub(channel)
        for body in (b"first", b"second"):
            client.send("climbs", body, queue_id=7, properties={"__SHARDINGKEY": "rope"})
        for number in (1, 2, 3):
            (one,) = receive_all(delivery, "climbers", "climbs", 1)
            assert (b"first" in one.record, one.delivery_number) == (True, number)
            change = pb.InvisibleChange(handle=one.handle, invisible_ms=0)
            request = pb.ChangeInvisibleRequest(group="climbers", topic="climbs", changes=[change])
            delivery.ChangeInvisible(request, timeout=60)
        (one,) = receive_all(delivery, "climbers", "climbs", 1)
        assert b"second" in one.record
        (dead,) = receive_all(delivery, "undertakers", "%DLQ%climbers", 1)
        assert b"first" in dead.record


@pytest.mark.slow
def test_at_a_store_alone(tandem: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No admin and no metasync: the store whose address commands know makes them itself."""
    with StoreProcess(tmp_path / "store", broker_name="alone") as store:
        monkeypatch.setenv("TANDEM_ADDRESS", store.address)
        monkeypatch.setattr("tandemmq.cli.nouns.lone_store.DEFAULT_ADMIN_ADDRESS", nowhere := closed_address())
        monkeypatch.setenv("TANDEM_ADMIN_ADDRESS", nowhere)
        check_usable(store.address, *make_both(tandem))
        again = tandem("topic", "create", "climbs", "--json")
        assert isinstance(again.exception, CallFailed)
        assert again.exception.failure.status == "ALREADY_EXISTS"
        kept = tandem("topic", "create", "kept", "--retention", "6").stdout
        assert kept == f"kept on {store.address}: rw, 16 queues read, 16 written, messages kept for 6 h\n"
        words = tandem("topic", "create", "plain", "--retention", "0")
        assert words.stdout == f"plain on {store.address}: rw, 16 queues read, 16 written\n"
        made = tandem("group", "create", "plain").stdout
        assert "in the store at" in made
        assert "16 times over 1 queue\n" in made
        assert "timeout       15 minutes" in made
        options = ("--consume-from", "last", "--ack-durability", "page-cache", "--keep-unconsumed", "--timeout", "3")
        made = tandem("group", "create", "careful", *options, "--retry-policy", "5s..2h").stdout
        for words in (
            "timeout           3 minutes",
            "begins at         last",
            "ack durability    page cache",
            "keeps unconsumed  yes",
            "retry policy      5s..2h*2",
        ):
            assert words in made, made
        for noun in ("topic", "group"):
            there = tandem(noun, "create", "plain").exception
            assert isinstance(there, CallFailed)
            assert f"`tandem {noun} update` changes it" in there.failure.message


def closed_address() -> str:
    return f"127.0.0.1:{free_port()}"


def test_at_a_store_that_is_named_as_if_it_were_an_admin(tandem: Run, tmp_path: Path) -> None:
    with StoreProcess(tmp_path / "store") as store:
        check_usable(store.address, *make_both(tandem, "--address", store.address))


def test_an_admin_that_was_named_and_is_away_is_told(tandem: Run, tmp_path: Path) -> None:
    """Nothing is made elsewhere then."""
    with StoreProcess(tmp_path / "store") as store:
        failed = tandem("topic", "create", "climbs", "--address", closed_address())
        assert isinstance(failed.exception, CallFailed)
        assert "no admin answers" in failed.exception.failure.message
        assert not (store.directory / "config" / "topics.json").exists()


@pytest.mark.slow
@pytest.mark.parametrize("options", [(), ("--slave",)], ids=["a node", "a pair"])
def test_at_tandem_up(tandem: Run, tmp_path: Path, options: tuple[str, ...]) -> None:
    with running(tmp_path / "data", "--admin", *options) as up:
        where = ("--address", up.address("admin"))
        check_usable(up.address("store"), *make_both(tandem, *where))
