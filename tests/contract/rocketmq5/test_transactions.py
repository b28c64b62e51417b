"""Transactions of RocketMQ 5 clients: half messages, their ends, and producers that are asked."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tandemmq.rocketmq5.v2 import calls_pb2
from tandemmq.rocketmq5.v2 import resources_pb2 as pb
from tests.contract.rocketmq5.conftest import THROUGH, gateway_before
from tests.contract.rocketmq5.v2_client import V2Client, duration, message
from tests.contract.store_process import StoreProcess


@pytest.fixture(scope="module", params=THROUGH)
def asking(
    request: pytest.FixtureRequest, transport: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[StoreProcess]:
    """A store that asks soon, or a gateway before one."""
    directory: Path = tmp_path_factory.mktemp(f"asking-{transport}") / "store"
    with StoreProcess(directory, transaction_time_out=1_000, transaction_check_interval=1_000) as store:
        if request.param == "store":
            yield store
        else:
            with gateway_before(store, directory.with_name("gateway")) as gateway:
                yield gateway


def end(client: V2Client, topic: str, transaction: str, resolution: calls_pb2.TransactionResolution.ValueType) -> int:
    answer = client.ask(
        "EndTransaction",
        topic=pb.Resource(name=topic),
        transaction_id=transaction,
        message_id="m",
        resolution=resolution,
        source=calls_pb2.SOURCE_CLIENT,
    )
    return int(answer.status.code)


def test_a_half_message_is_committed_once_and_a_repeat_is_fine(asking: StoreProcess) -> None:
    with V2Client(asking.address) as client:
        entry = client.send(message("halves", kind=pb.TRANSACTION)).entries[0]
        assert entry.status.code == pb.OK
        for _ in range(2):
            assert end(client, "halves", entry.transaction_id, calls_pb2.COMMIT) == pb.OK
        assert end(client, "halves", entry.transaction_id, calls_pb2.ROLLBACK) == pb.INVALID_TRANSACTION_ID
        assert end(client, "halves", "nobody knows it", calls_pb2.COMMIT) == pb.INVALID_TRANSACTION_ID


def test_the_message_id_is_a_transaction_id_too(asking: StoreProcess) -> None:
    with V2Client(asking.address) as client:
        entry = client.send(message("halves", kind=pb.TRANSACTION)).entries[0]
        assert end(client, "halves", entry.message_id, calls_pb2.ROLLBACK) == pb.OK


def test_a_producer_of_the_topic_is_asked_and_its_answer_counts(asking: StoreProcess) -> None:
    with V2Client(asking.address) as client:
        stream = client.stream()
        stream.say(client.producer("orphans"))
        stream.next("settings")
        half = message("orphans", b"half", pb.TRANSACTION, tag="t", orphaned_transaction_recovery_duration=duration(1))
        half.user_properties["mine"] = "yes"
        sent = client.send(half).entries[0]
        asked = stream.next("recover_orphaned_transaction_command").recover_orphaned_transaction_command
        system = asked.message.system_properties
        assert (asked.message.topic.name, asked.message.body) == ("orphans", b"half")
        assert (system.message_id, system.tag) == (sent.message_id, "t")
        assert asked.message.user_properties["mine"] == "yes"
        assert not system.HasField("receipt_handle")
        assert system.body_digest.checksum
        answer = client.ask(
            "EndTransaction",
            topic=asked.message.topic,
            transaction_id=asked.transaction_id,
            message_id=system.message_id,
            resolution=calls_pb2.COMMIT,
            source=calls_pb2.SOURCE_SERVER_CHECK,
        )
        assert answer.status.code == pb.OK
