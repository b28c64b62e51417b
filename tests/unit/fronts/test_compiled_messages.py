"""The compiled core against its Python twin, for RocketMQ 5 clients: the same requests, the same answers and log."""

import asyncio
import hashlib
import zlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from google.protobuf.message import DecodeError
from google.protobuf.timestamp_pb2 import Timestamp
from hypothesis import strategies as st

from tandemmq.common.errors import TandemError
from tandemmq.common.grpc_transport import HELD
from tandemmq.rocketmq5.v2 import calls_pb2, message_pb2
from tandemmq.rocketmq5.v2 import resources_pb2 as pb
from tandemmq.store.broker.group_transfer import PutStatus
from tandemmq.store.broker.submission import Receipt
from tandemmq.store.broker.topics import PERM_READ, TopicConfig
from tandemmq.store.compiled_core import compiled_core, core_problem
from tandemmq.store.fronts.direct_port import stored
from tandemmq.store.fronts.held_answer import SendCore
from tandemmq.store.fronts.native.requests import peer_host
from tandemmq.store.fronts.rocketmq5 import body_digest
from tandemmq.store.fronts.rocketmq5.direct_send import DirectSendMessage
from tandemmq.store.fronts.rocketmq5.message_types import check_type
from tandemmq.store.fronts.rocketmq5.names import topic_name
from tandemmq.store.fronts.rocketmq5.sending import entry_of
from tandemmq.store.fronts.rocketmq5.sent_message import INTERNAL, new_message, type_of
from tandemmq.store.fronts.rocketmq5.statuses import joined
from tandemmq.store.settings import CoreChoice
from tests.campaigns import examples
from tests.unit.broker.broker_kit import HOST, Kit, broker
from tests.unit.fronts.compiled_kit import Way, around_the_core, changed_by_sends, comparable, logged
from tests.unit.fronts.direct_caller import DirectCaller

pytestmark = pytest.mark.skipif(core_problem() != "", reason=core_problem() or "it is there")

PEERS = ("ipv4:10.1.2.3:4567", "ipv6:%5Bfe80::1%5D:4567")
MOST = 16 * 1024


@asynccontextmanager
async def serving(root: Path, **settings: Any) -> AsyncIterator[tuple[Kit, SendCore]]:
    size: dict[str, Any] = {"mapped_file_size_commit_log": 1 << 20, "rules": {"file_size": 1 << 20}}
    async with broker(root, **{**size, "window": 0, **settings}) as kit:
        for topic, kind in (("orders", ""), ("normal", "NORMAL"), ("fifo", "FIFO"), ("%RETRY%workers", "")):
            other = {"attributes": {"message.type": kind}} if kind else {}
            kit.topics._entries[topic] = TopicConfig(topic, 2, 2, other=other)
        core = compiled_core(kit.broker, kit.store.timers.call_soon, CoreChoice.ALWAYS, "cluster").message
        assert core is not None
        yield kit, core


def request(body: bytes = b"body", topic: str = "orders", own: dict[str, str] | None = None, **system: Any) -> bytes:
    """A request with one plain message, but for what is said."""
    born = Timestamp(seconds=1_700_000_000)
    said = {"message_id": "01AB", "message_type": pb.NORMAL, "born_timestamp": born, **system}
    set_fields: dict[str, Any] = {name: value for name, value in said.items() if value is not None}
    message = message_pb2.Message(
        topic=pb.Resource(name=topic), user_properties=own or {}, body=body,
        system_properties=message_pb2.SystemProperties(**set_fields),
    )  # fmt: skip
    return calls_pb2.SendMessageRequest(messages=[message]).SerializeToString()


def python_way(kit: Kit, given: bytes, peer: str = PEERS[0]) -> bytes | str:
    """The answer of the Python path, or the name of its refusal."""
    try:
        messages = calls_pb2.SendMessageRequest.FromString(given).messages
        if len(messages) != 1:
            return "not one message"
        (message,) = messages
        topic = topic_name(message.topic, "")
        config = kit.topics.get(topic)
        if config is None:
            return "a topic must be made"
        kind = type_of(message)
        check_type(config, kind)
        new = new_message(message, topic, kind, peer_host(peer), MOST)
        body_digest.check_at_once(message.system_properties.body_digest, new.body)
        found = kit.broker.store_at_once(new)
    except (TandemError, DecodeError) as error:
        return type(error).__name__
    if found is None:
        return "a topic must be made"
    entry = entry_of(stored(Receipt(*found, PutStatus.PUT_OK)))
    return calls_pb2.SendMessageResponse(status=joined([entry.status]), entries=[entry]).SerializeToString()


@pytest.mark.parametrize("topic", ["TBW102", "BenchmarkTest", "RMQ_SYS_TRACE_TOPIC", "rmq_sys_own"])
async def test_topics_of_the_brokers_own_are_not_taken(tmp_path: Path, topic: str) -> None:
    """Also those that classic clients may send to: RocketMQ 5 clients are refused there."""
    async with serving(tmp_path) as (kit, core):
        kit.topics._entries[topic] = TopicConfig(topic, 1, 1)
        kit.store.commit_log.offsets[topic, 0] = 0
        assert core.answer(request(topic=topic), HOST.packed) is None
        assert python_way(kit, request(topic=topic)) == "ProtocolRefusal"


texts = st.sampled_from(["", "plain", "a b", "é", "a|b", "\x01", "\n", "x" * 200, "-7"]) | st.text(max_size=4)
names = st.sampled_from(["color", "KEYS", "UNIQ_KEY", "a b", "é", "TRACE_CONTEXT", ""]) | st.text(max_size=3)
digests = st.builds(
    message_pb2.Digest,
    type=st.sampled_from([0, 1, 2, 3, 7]),
    checksum=st.sampled_from(
        ["", "00", f"{zlib.crc32(b'body'):X}", str(zlib.crc32(b"body")), hashlib.md5(b"body").hexdigest()]
    ),
)
SYSTEM: dict[str, st.SearchStrategy[Any]] = {
    "tag": texts,
    "keys": st.lists(texts, max_size=3),
    "message_id": texts,
    "body_digest": digests,
    "body_encoding": st.sampled_from([0, 1, 2, 3]),
    "message_type": st.sampled_from([0, 1, 2, 3, 4, 6, 9]),
    "born_timestamp": st.none()
    | st.builds(Timestamp, seconds=st.sampled_from([0, 1, -1, 1 << 41]), nanos=st.sampled_from([0, 5_000_000, -1])),
    "born_host": texts,
    "queue_id": st.sampled_from([0, 1, 9, -1]),
    "message_group": texts,
    "trace_context": texts,
    "delivery_timestamp": st.just(Timestamp(seconds=5)),
    "priority": st.sampled_from([0, 3, -1]),
    "store_host": texts,
}
changes = st.lists(st.sampled_from(sorted(SYSTEM)), max_size=2, unique=True).flatmap(
    lambda chosen: st.fixed_dictionaries({name: SYSTEM[name] for name in chosen})
)


@st.composite
def requests(draw: st.DrawFn) -> bytes:
    given = request(
        draw(st.sampled_from([b"body", b"body", b"body", b"", b"x" * MOST, b"x" * (MOST + 1)])),
        draw(st.sampled_from(["orders", "orders", "normal", "fifo", "missing", "%RETRY%workers", ""])),
        draw(st.dictionaries(names, texts, max_size=3)) if draw(st.booleans()) else {},
        **draw(changes),
    )
    how = draw(st.sampled_from(["", "", "", "byte", "twice", "cut"]))
    at = draw(st.integers(0, len(given) - 1))
    if how == "byte":
        return given[:at] + bytes([draw(st.integers(0, 255))]) + given[at + 1 :]
    if how == "twice":
        return given + given[at:]
    return given[:at] if how == "cut" else given


@examples(25, 300, st.lists(st.tuples(requests(), st.sampled_from(PEERS)), max_size=12), st.sampled_from([0, 60_000]))
def test_both_ways_give_the_same_answers_and_the_same_log(calls: list[tuple[bytes, str]], window: int) -> None:
    with TemporaryDirectory() as one, TemporaryDirectory() as two:
        asyncio.run(_compare(Path(one), Path(two), calls, window))


async def _compare(one: Path, two: Path, calls: list[tuple[bytes, str]], window: int) -> None:
    async with serving(one, window=window) as (kit, core), serving(two, window=window) as (twin, _):
        for given, peer in calls:
            before = changed_by_sends(kit)
            answer: bytes | str | None = core.answer(given, peer_host(peer).packed)
            expected = python_way(twin, given, peer)
            if answer is None:
                assert changed_by_sends(kit) == before
                answer = python_way(kit, given, peer)
            assert answer == expected
            assert changed_by_sends(kit) == changed_by_sends(twin)
            kit.clock.now = twin.clock.now = kit.clock.now + 1
        await asyncio.sleep(0)
        assert [comparable(record) for record in logged(kit)] == [comparable(record) for record in logged(twin)]


FULL: dict[str, Any] = {
    "tag": "paid", "keys": ["a", "b"], "body_encoding": message_pb2.GZIP, "born_host": "worker-7", "queue_id": 3,
    "trace_context": "00-1",
    "body_digest": message_pb2.Digest(type=message_pb2.CRC32, checksum=f"{zlib.crc32(b'body'):X}"),
}  # fmt: skip


async def test_what_clients_send_is_taken_to_the_byte(tmp_path: Path) -> None:
    async with serving(tmp_path / "a") as (kit, core), serving(tmp_path / "b") as (twin, _):
        given = request(own={"color": "grün"}, **FULL)
        for _ in range(2):  # the first message of each queue is Python's
            assert core.answer(given, HOST.packed) is None
            assert python_way(kit, given) == python_way(twin, given)
        for one in (given, request(), request(own={f"n{at}": "v" for at in range(9)}), request(born_timestamp=None)):
            answer = core.answer(one, peer_host(PEERS[0]).packed)
            assert answer == python_way(twin, one)
        assert core.taken == 4
        assert [comparable(record) for record in logged(kit)] == [comparable(record) for record in logged(twin)]


async def test_a_change_of_the_topic_counts_from_the_next_message_on(tmp_path: Path) -> None:
    async with serving(tmp_path) as (kit, core):
        topic = kit.topics.get("orders")
        assert topic is not None
        for _ in range(topic.write_queues):
            python_way(kit, request())
        fifo = {"attributes": {"message.type": "FIFO"}}
        for changed in (replace(topic, perm=PERM_READ), replace(topic, other=fifo), replace(topic, write_queues=0)):
            assert core.answer(request(), HOST.packed) is not None
            await kit.topics.change([changed], [])
            assert core.answer(request(), HOST.packed) is None
            await kit.topics.change([topic], [])
        assert core.answer(request(), HOST.packed) is not None
        await kit.topics.change([], ["orders"])
        assert core.answer(request(), HOST.packed) is None


async def test_nothing_else_is_taken(tmp_path: Path) -> None:
    async with serving(tmp_path) as (kit, core):
        for _ in range(2):
            python_way(kit, request())
        before = changed_by_sends(kit)
        two = calls_pb2.SendMessageRequest.FromString(request())
        two.messages.append(two.messages[0])
        spaced = calls_pb2.SendMessageRequest.FromString(request())
        spaced.messages[0].topic.resource_namespace = "shop"
        for given in (
            b"", two.SerializeToString(), spaced.SerializeToString(), request(b""), request(b"x" * (MOST + 1)),
            request(topic="missing"), request(topic="fifo"), request(topic="%RETRY%workers"), request(message_id=""),
            request(message_id="x" * 129), request(message_id="a b"), request(tag="a|b"), request(keys=[""]),
            request(message_type=pb.FIFO, message_group="g"), request(message_group="g"),
            request(delivery_timestamp=Timestamp(seconds=1)), request(priority=1), request(body_encoding=3),
            request(body_digest=message_pb2.Digest(type=message_pb2.CRC32, checksum="00")),
            request(body_digest=message_pb2.Digest(type=message_pb2.SHA1, checksum="00")),
            request(own={"long": "x" * 16_384}), *(request(own={name: "v"}) for name in sorted(INTERNAL)),
        ):  # fmt: skip
            assert core.answer(given, HOST.packed) is None, given
        assert changed_by_sends(kit) == before


@around_the_core
async def test_who_calls_must_be_named_and_in_no_namespace_and_waits_for_the_disk(tmp_path: Path, way: Way) -> None:
    async with serving(tmp_path, flush_disk_type="SYNC_FLUSH") as (kit, core):
        for _ in range(2):
            python_way(kit, request())
        sends = DirectSendMessage(core, kit.broker.acknowledgement, kit.traffic)
        direct = way(sends)
        for metadata in ((), (("x-mq-client-id", " "),), (("x-mq-client-id", "me"), ("x-mq-namespace", "shop"))):
            assert direct(request(), DirectCaller(headers=metadata)) is None
        caller = DirectCaller()
        assert direct(request(), caller) is HELD
        while not caller.answers:
            await asyncio.sleep(0.001)
        assert calls_pb2.SendMessageResponse.FromString(caller.answers[0]).status.code == pb.OK
        answer, outcome = sends.when_safe.less_safe(caller.answers[0], PutStatus.FLUSH_DISK_TIMEOUT)
        assert outcome == "MASTER_PERSISTENCE_TIMEOUT"
        assert calls_pb2.SendMessageResponse.FromString(answer).entries[0].status.code == pb.MASTER_PERSISTENCE_TIMEOUT
