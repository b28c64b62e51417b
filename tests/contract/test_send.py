"""Send: what is stored, what the receipt says, what is refused."""

import json
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tandemmq.client import StoreClient
from tandemmq.store.v1 import store_pb2
from tandemmq.store.v1.message_pb2 import DECODED, Message
from tandemmq.store.v1.store_pb2_grpc import StoreStub
from tests.contract.refusals import refused
from tests.contract.store_process import StoreProcess


@pytest.fixture(scope="module", params=["auto", "never"])
def shared_store(
    request: pytest.FixtureRequest, transport: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[StoreProcess]:
    """With the compiled core, where it is built, and without."""
    directory = tmp_path_factory.mktemp(f"sends-{transport}-{request.param}")
    with StoreProcess(directory / "store", compiled_core=request.param) as store:
        yield store


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_a_message_is_where_its_receipt_says_also_after_a_restart(
    own_store: StoreProcess, number: signal.Signals
) -> None:
    with own_store.client() as client:
        receipts = [client.send("orders", b"body %d" % n, tag="t", keys=["k1", "k2"], queue_id=1) for n in range(3)]
    own_store.restart(number)
    with own_store.client() as client:
        pulled = client.pull("orders", 1, 0)
        assert [record.body for record in pulled.records] == [b"body 0", b"body 1", b"body 2"]
        for receipt, record in zip(receipts, pulled.records, strict=True):
            assert receipt.status == store_pb2.PUT_OK
            assert (receipt.queue_id, receipt.queue_offset) == (1, record.queue_offset)
            assert receipt.physical_offset == record.physical_offset
            assert receipt.store_timestamp == record.store_timestamp
            assert receipt.unique_key == record.unique_key
            assert client.view(receipt.message_id) == record
            assert client.query("orders", unique_key=receipt.unique_key) == [record]
        after = client.send("orders", b"after", queue_id=1)
        assert after.queue_offset == 3


def test_a_repeatable_message_is_stored_once(stub: StoreStub) -> None:
    """One whose sender says so. The same key twice is meant, where nobody says so."""

    def send(repeatable: bool) -> store_pb2.SendReceipt:
        message = Message(
            topic="repeated", queue_id=0, properties={"UNIQ_KEY": f"k{repeatable}"}, repeatable=repeatable
        )
        return stub.Send(store_pb2.SendRequest(message=message)).receipt

    first = send(True)
    assert send(True) == first
    assert [send(False).queue_offset for _ in range(2)] == [1, 2]
    message = Message(topic="repeated", properties={"UNIQ_KEY": "kTrue"}, repeatable=True)
    batch = stub.SendBatch(store_pb2.SendBatchRequest(messages=[message])).receipts[0]
    assert batch.queue_offset == first.queue_offset


def test_queues_are_taken_in_turn(client: StoreClient) -> None:
    receipts = [client.send("turns", b"") for _ in range(8)]
    assert [receipt.queue_id for receipt in receipts] == [0, 1, 2, 3, 0, 1, 2, 3]
    assert [receipt.queue_offset for receipt in receipts] == [0, 0, 0, 0, 1, 1, 1, 1]


def test_everything_a_message_has_is_kept(client: StoreClient, stub: StoreStub) -> None:
    sent = Message(
        topic="everything-Of_1%|",
        queue_id=2,
        body=b"\x00\x01\x02\xff",
        tag="späte Tags",
        keys=["k-1", "k-2"],
        properties={"UNIQ_KEY": "my own id", "empty": "", "WAIT": "false", "emoji": "😀", "POP_CK": "not a client's"},
        flag=-7,
        sys_flag=0x201,
        born_timestamp=1_700_000_000_000,
        born_host="[2001:db8::1]:5678",
        reconsume_times=3,
    )
    receipt = stub.Send(store_pb2.SendRequest(message=sent)).receipt
    stored = stub.ViewMessage(store_pb2.ViewMessageRequest(message_id=receipt.message_id, form=DECODED)).message
    assert receipt.unique_key == stored.unique_key == "my own id"
    assert (stored.topic, stored.queue_id, stored.body, stored.flag) == (sent.topic, 2, sent.body, -7)
    assert stored.sys_flag == 0x201 | 0x10, "the IPv6 bit of the born host is the store's"
    assert (stored.born_timestamp, stored.born_host) == (1_700_000_000_000, "[2001:db8::1]:5678")
    assert (stored.reconsume_times, stored.tag, list(stored.keys)) == (3, "späte Tags", ["k-1", "k-2"])
    assert dict(stored.properties) == {
        "UNIQ_KEY": "my own id", "emoji": "😀", "TAGS": "späte Tags", "KEYS": "k-1 k-2",
    }  # fmt: skip
    record = client.view(receipt.message_id)
    assert record.properties_bytes.endswith(b"\x02")


def test_an_empty_body_and_the_largest(client: StoreClient) -> None:
    assert client.view(client.send("sizes", b"").message_id).body == b""
    largest = bytes(32 * 1024)
    assert client.view(client.send("sizes", largest).message_id).body == largest


def test_a_long_retry_topic_is_a_record_of_version_2(client: StoreClient) -> None:
    topic = "%RETRY%" + "g" * 248
    record = client.view(client.send(topic, b"again").message_id)
    assert (record.topic, record.is_v2) == (topic, True)
    assert client.pull(topic, 0, 0).records == [record]


def test_the_born_host_is_the_peer(client: StoreClient) -> None:
    record = client.view(client.send("peers", b"").message_id)
    assert str(record.born_host).startswith("127.0.0.1:")
    assert str(record.store_host) == "127.0.0.1:10911"


def message(**fields: object) -> Message:
    return Message(**{"topic": "refused", "body": b"x", **fields})  # type: ignore[arg-type]


def with_properties(**properties: str) -> Message:
    return message(properties=properties)


ILLEGAL = ("INVALID_ARGUMENT", "MESSAGE_ILLEGAL")
BAD_DELAY = ("INVALID_ARGUMENT", "MESSAGE_ILLEGAL")

REFUSED = {
    "body too large": (message(body=bytes(32 * 1024 + 1)), *ILLEGAL, "32,769 bytes"),
    "no topic": (message(topic=""), *ILLEGAL, "empty"),
    "topic too long": (message(topic="t" * 128), *ILLEGAL, "128 characters"),
    "retry topic too long": (message(topic="%RETRY%" + "t" * 249), *ILLEGAL, "256 characters"),
    "topic with a blank": (message(topic="a b"), *ILLEGAL, "'a b'"),
    "topic with a slash": (message(topic="../etc"), *ILLEGAL, "'../etc'"),
    "topic with a dot": (message(topic="."), *ILLEGAL, "'.'"),
    "topic not ASCII": (message(topic="bestellungen-ä"), *ILLEGAL, "other characters"),
    "system topic": (message(topic="SCHEDULE_TOPIC_XXXX"), "PERMISSION_DENIED", "MESSAGE_ILLEGAL", "system topic"),
    "half topic": (message(topic="RMQ_SYS_TRANS_HALF_TOPIC"), "PERMISSION_DENIED", "MESSAGE_ILLEGAL", "system topic"),
    "queue too high": (message(queue_id=4), "OUT_OF_RANGE", "MESSAGE_ILLEGAL", "4 write queues"),
    "queue negative": (message(queue_id=-2), "OUT_OF_RANGE", "MESSAGE_ILLEGAL", "no queue -2"),
    "property name with 01": (with_properties(**{"a\x01b": "c"}), *ILLEGAL, "01"),
    "property value with 02": (with_properties(a="b\x02c"), *ILLEGAL, "02"),
    "property without a name": (with_properties(**{"": "c"}), *ILLEGAL, "name"),
    "key with a blank": (message(keys=["a b"]), *ILLEGAL, "space"),
    "empty key": (message(keys=[""]), *ILLEGAL, "empty"),
    "tag twice": (message(tag="a", properties={"TAGS": "b"}), *ILLEGAL, "TAGS"),
    "keys twice": (message(keys=["a"], properties={"KEYS": "b"}), *ILLEGAL, "KEYS"),
    "properties too long": (
        with_properties(long="x" * 32_767), "INVALID_ARGUMENT", "PROPERTIES_SIZE_EXCEEDED", "32,767",
    ),
    "delay that is no number": (with_properties(DELAY="soon"), *ILLEGAL, "'soon'"),
    "timed beyond the limit": (with_properties(TIMER_DELAY_SEC="3456001"), *BAD_DELAY, "3,456,000 s"),
    "timed by no number": (with_properties(TIMER_DELIVER_MS="noon"), *BAD_DELAY, "'noon'"),
    "timed before now": (with_properties(TIMER_DELAY_MS="-5"), *BAD_DELAY, "negative"),
    "flag of the broker": (message(sys_flag=4), *ILLEGAL, "0x4"),
    "unknown compression": (message(sys_flag=0x400), *ILLEGAL, "0x400"),
    "born before 1970": (message(born_timestamp=-1), *ILLEGAL, "negative"),
    "reconsumed a negative number of times": (message(reconsume_times=-1), *ILLEGAL, "negative"),
    "born nowhere": (message(born_host="here"), *ILLEGAL, "'here'"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_refused(stub: StoreStub, name: str) -> None:
    bad, code, status, words = REFUSED[name]
    with refused(stub, code, status, words):
        stub.Send(store_pb2.SendRequest(message=bad))


def test_properties_of_exactly_the_limit_are_stored(client: StoreClient) -> None:
    room = 32_767 - len("UNIQ_KEY\x01id\x02") - len("p\x01\x02")
    receipt = client.send("limits", b"", properties={"UNIQ_KEY": "id", "p": "x" * room})
    assert len(client.view(receipt.message_id).properties_bytes) == 32_767


def test_delay_level_0_and_no_transaction_are_ordinary(client: StoreClient) -> None:
    receipt = client.send("ordinary", b"", queue_id=0, properties={"DELAY": "0", "TRAN_MSG": "false"})
    (record,) = client.pull("ordinary", 0, receipt.queue_offset).records
    assert (record.properties["DELAY"], record.properties["TRAN_MSG"]) == ("0", "false")


def test_a_topic_is_not_created_where_that_is_off(tmp_path: Path) -> None:
    store = StoreProcess(tmp_path / "store", auto_create_topic_enable=False)
    refusal = ("NOT_FOUND", "MESSAGE_ILLEGAL", "autoCreateTopicEnable")
    with store, store.stub() as stub, refused(stub, *refusal):
        stub.Send(store_pb2.SendRequest(message=Message(topic="orders")))


def test_permissions_of_a_topic(tmp_path: Path) -> None:
    config = tmp_path / "store" / "config" / "topics.json"
    config.parent.mkdir(parents=True)
    table = {
        name: {"topicName": name, "perm": perm, "readQueueNums": 1, "writeQueueNums": 1}
        for name, perm in (("read-only", 4), ("write-only", 2))
    }
    config.write_text(json.dumps({"topicConfigTable": table}))
    with StoreProcess(tmp_path / "store") as store, store.stub() as stub:
        with refused(stub, "PERMISSION_DENIED", "MESSAGE_ILLEGAL", "does not allow sending"):
            stub.Send(store_pb2.SendRequest(message=Message(topic="read-only")))
        stub.Send(store_pb2.SendRequest(message=Message(topic="write-only")))
        with refused(stub, "PERMISSION_DENIED", "NO_MATCHED_LOGIC_QUEUE", "does not allow reading"):
            stub.Pull(store_pb2.PullRequest(topic="write-only"))


def test_sync_flush_acknowledges_what_is_on_disk(tmp_path: Path) -> None:
    with (
        StoreProcess(tmp_path / "store", flush_disk_type="SYNC_FLUSH", sync_flush_timeout=60_000) as store,
        store.client() as client,
    ):
        receipt = client.send("durable", b"x", queue_id=0)
        assert receipt.status == store_pb2.PUT_OK
        log = client.queues().log
        assert log.flushed_offset == log.max_offset
        assert client.pull("durable", 0, 0).records[0].body == b"x", "visible once acknowledged"
        assert client.send("durable", b"y", queue_id=0, no_wait=True).status == store_pb2.PUT_OK
        assert client.send("durable", b"z", queue_id=0, properties={"WAIT": "false"}).queue_offset == 2
        assert client.pull("durable", 0, 1, wait_seconds=30).records, "flushed although nobody waits"
        assert client.pull("durable", 0, 2, wait_seconds=30).records[0].body == b"z"
