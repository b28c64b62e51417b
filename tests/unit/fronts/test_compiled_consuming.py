"""The compiled core against its Python twins, for RocketMQ 5 consumers: what is given out, acknowledgements."""

import asyncio
from contextlib import suppress
from typing import Any

import pytest
from google.protobuf.message import DecodeError
from hypothesis import strategies as st

from tandemmq.rocketmq5.v2 import calls_pb2, message_pb2
from tandemmq.rocketmq5.v2 import resources_pb2 as pb
from tandemmq.store.compiled_core import core_problem
from tandemmq.store.delivery.errors import BadHandle
from tandemmq.store.delivery.port import GivenMessage, Outcome
from tandemmq.store.format import properties as names
from tandemmq.store.format import sysflag
from tandemmq.store.format.errors import FormatError
from tandemmq.store.format.host import Host
from tandemmq.store.format.message import Message
from tandemmq.store.format.record_encoder import encode_record
from tandemmq.store.fronts.rocketmq5.acks import Acks, encoded
from tandemmq.store.fronts.rocketmq5.body_digest import AT_ONCE
from tandemmq.store.fronts.rocketmq5.given_messages import GivenMessages
from tandemmq.store.fronts.rocketmq5.sent_message import BORN_HOST, INTERNAL, TRACE_CONTEXT
from tests.campaigns import examples

pytestmark = pytest.mark.skipif(core_problem() != "", reason=core_problem() or "it is there")

TOPIC = pb.Resource(resource_namespace="shop", name="orders")
FIELD = message_pb2.Message(topic=TOPIC).SerializeToString()
V4, V6 = Host("10.1.2.3", 4567), Host("fe80::1", 10911)
GZIP = b"\x1f\x8b"


def record(
    own: dict[str, str] | None = None,
    properties: bytes = b"",
    offset: int = 7,
    stored: int = 1_700_000_000_001,
    **said: Any,
) -> bytes:
    """A record with a unique key, but for what is said. `own`: more properties; `properties`: all of them, encoded."""
    fields: dict[str, Any] = {
        "topic": "orders", "queue_id": 3, "body": b"body", "born_timestamp": 1_700_000_000_000, "born_host": V4,
        "store_host": V4, **said,
    }  # fmt: skip
    given = properties or names.encode({names.UNIQ_KEY: "01AB", **(own or {})})
    return encode_record(Message(properties=given, **fields), offset, 4096, stored)


def python_way(given: GivenMessage) -> bytes | None:
    """The part of an answer, as Python writes it; None where it cannot."""
    try:
        return asyncio.run(GivenMessages(1 << 22).of(TOPIC).looked_into(given))
    except (FormatError, ValueError):
        return None


def core_way(given: GivenMessage) -> bytes | None:
    from tandemmq.store.fronts.rocketmq5.compiled.given_message import CompiledGivenMessage

    return GivenMessages(1 << 22, CompiledGivenMessage()).of(TOPIC).at_once(given)


def same(taken: bytes, expected: bytes | None) -> bool:
    """Whether both are the same answer; entries of a map have no order."""
    if expected is None:
        return False
    one, other = (calls_pb2.ReceiveMessageResponse.FromString(answer) for answer in (taken, expected))
    if len(one.message.user_properties) < 2:
        return taken == expected
    return one == other and len(taken) == len(expected)


texts = st.sampled_from(["a", "a b", "  a  b ", "é", "true", "TRUE", "x" * 200, "12", "-7", "\x01"]) | st.text(
    st.characters(codec="utf-8", exclude_characters="\x02"), max_size=4
)
property_names = st.sampled_from(
    [*sorted(INTERNAL), names.TAGS, names.KEYS, names.SHARDING_KEY, TRACE_CONTEXT, BORN_HOST, "color", "é", "n" * 130]
) | st.text(st.characters(codec="utf-8", exclude_characters="\x01\x02"), max_size=3)
pairs = st.lists(st.tuples(property_names, texts), max_size=4)


@st.composite
def records(draw: st.DrawFn) -> bytes:
    chosen = draw(pairs)
    data = b"".join(f"{name}\x01{value}\x02".encode() for name, value in [(names.UNIQ_KEY, "01AB"), *chosen])
    data = data[1:] if draw(st.integers(0, 9)) == 0 else data
    given = record(
        None,
        data.removesuffix(b"\x02") if draw(st.booleans()) else data,
        draw(st.sampled_from([0, 7, 1 << 40])),
        draw(st.sampled_from([0, 999, 1_700_000_000_001])),
        body=draw(st.sampled_from([b"body", b"", GZIP + b"x", b"x" * 300])),
        topic=draw(st.sampled_from(["orders", "x" * 200])),
        queue_id=draw(st.sampled_from([0, 3, -1])),
        sys_flag=draw(st.sampled_from([0, sysflag.COMPRESSED, sysflag.MULTI_TAGS, sysflag.TRANSACTION_COMMIT])),
        born_timestamp=draw(st.sampled_from([0, 1, 1_700_000_000_000, -1])),
        born_host=draw(st.sampled_from([V4, V6])),
        store_host=draw(st.sampled_from([V4, V6])),
    )
    how = draw(st.sampled_from(["", "", "", "byte", "cut", "longer"]))
    at = draw(st.integers(0, len(given) - 1))
    if how == "byte":
        return given[:at] + bytes([draw(st.integers(0, 255))]) + given[at + 1 :]
    if how == "longer":
        return given + given[at:]
    return given[:at] if how == "cut" else given


@examples(50, 2_000, records(), st.integers(1, 40), st.sampled_from([1, 999, 30_000, 61_500]))
def test_what_the_core_takes_it_writes_as_python_does(data: bytes, number: int, invisible: int) -> None:
    given = GivenMessage("orders", data, number, "handle_-1", invisible)
    taken = core_way(given)
    assert taken is None or same(taken, python_way(given))


PLAIN: list[dict[str, Any]] = [
    {},
    {"own": {"color": "grün", names.TAGS: "paid", names.KEYS: " a  b "}},
    {"own": {names.SHARDING_KEY: "customer-7", TRACE_CONTEXT: "00-1", BORN_HOST: "worker-7"}},
    {"own": {names.WAIT: "true", names.RETRY_TOPIC: "orders", names.ORIGIN_MESSAGE_ID: "01", "a": "b"}},
    {"own": {names.TRANSACTION_ID: "01AB", names.TRAN_MSG: "true", names.PGROUP: "g"}},
    {"body": b"", "queue_id": 0, "offset": 0, "born_timestamp": 0, "stored": 999},
    {"body": GZIP + b"x", "sys_flag": sysflag.COMPRESSED, "born_host": V6, "store_host": V6},
    {"body": b"x" * AT_ONCE, "topic": "x" * 200},
]


@pytest.mark.parametrize("said", PLAIN)
def test_what_consumers_get_mostly_is_taken_to_the_byte(said: dict[str, Any]) -> None:
    given = GivenMessage("orders", record(**said), 1, "handle", 30_000)
    assert core_way(given) == python_way(given) is not None


@pytest.mark.parametrize(
    "said",
    [
        {"properties": b"a\x01b\x02"},
        {"properties": b"UNIQ_KEY\x01a\x02a\x01b\x02a\x01c\x02"},
        {"properties": b"UNIQ_KEY\x01a\x02TAGS\x01b\x02TAGS\x01c\x02"},
        {"properties": b"UNIQ_KEY\x01a\x02a\x01\xff\x02"},
        {"own": {names.TIMER_DELIVER_MS: "1700000000000"}},
        {"own": {names.PRIORITY: "3"}},
        {"own": {names.DLQ_ORIGIN_TOPIC: "orders"}},
        {"own": {names.TRAN_MSG: "TRUE"}},
        {"own": {f"n{at}": "v" for at in range(65)}},
        {"own": {"long": "x" * 8_192}},
        {"body": b"x" * (AT_ONCE + 1)},
        {"body": b"zlib", "sys_flag": sysflag.COMPRESSED},
        {"queue_id": -1},
        {"born_timestamp": -1},
    ],
)  # fmt: skip
def test_what_means_more_is_python_s(said: dict[str, Any]) -> None:
    assert core_way(GivenMessage("orders", record(**said), 1, "handle", 30_000)) is None


def test_a_delivery_that_lasts_for_ever_or_was_none_is_python_s() -> None:
    for number, invisible, handle in (
        (0, 1, "h"),
        (1, 0, "h"),
        (1 << 31, 1, "h"),
        (1, 1 << 60, "h"),
        (1, 1, "h" * 600),
    ):
        assert core_way(GivenMessage("orders", record(), number, handle, invisible)) is None


# -- acknowledgements -----------------------------------------------------------------------------------------------


def ack_request(
    *entries: tuple[str, str], group: str = "workers", topic: str = "orders"
) -> calls_pb2.AckMessageRequest:
    return calls_pb2.AckMessageRequest(
        group=pb.Resource(name=group),
        topic=pb.Resource(name=topic, resource_namespace="shop"),
        entries=[calls_pb2.AckMessageEntry(message_id=one, receipt_handle=handle) for one, handle in entries],
    )


def compiled_acks(data: bytes) -> Acks | None:
    """Where it was read by the core."""
    from tandemmq.store.fronts.rocketmq5.compiled.ack_message import read

    return None if read(data) is None else Acks(data, read)


@st.composite
def ack_requests(draw: st.DrawFn) -> bytes:
    said = st.sampled_from(["01AB", "handle_-1", "", "é", "a\x00", "x" * 200])
    given = ack_request(*draw(st.lists(st.tuples(said, said), max_size=4))).SerializeToString()
    how = draw(st.sampled_from(["", "", "byte", "cut", "twice"]))
    at = draw(st.integers(0, max(0, len(given) - 1)))
    if how == "byte":
        return given[:at] + bytes([draw(st.integers(0, 255))]) + given[at + 1 :]
    if how == "twice":
        return given + given[at:]
    return given[:at] if how == "cut" else given


@examples(200, 2_000, ack_requests())
def test_both_ways_read_the_same_acknowledgements_and_answer_alike(data: bytes) -> None:
    try:
        expected = Acks(data)
    except DecodeError:
        with suppress(DecodeError):  # a group or topic that is no Resource
            assert compiled_acks(data) is None
        return
    taken = compiled_acks(data)
    if taken is None:
        return
    assert (taken.group, taken.topic, taken.handles) == (expected.group, expected.topic, expected.handles)
    done = [Outcome(one) for one in taken.handles]
    assert encoded(taken.answer(done)) == encoded(expected.answer(done))
    done[-1] = Outcome(done[-1].handle, BadHandle("no"))
    assert encoded(taken.answer(done)) == encoded(expected.answer(done))


def test_what_clients_acknowledge_is_taken() -> None:
    many = [(f"{at:032X}", "handle" * 15) for at in range(32)]
    for entries in (many, many[:1], [("", "handle")]):
        data = ack_request(*entries).SerializeToString()
        taken = compiled_acks(data)
        assert taken is not None
        assert taken.handles == [handle for _, handle in entries]
        answer = calls_pb2.AckMessageResponse.FromString(encoded(taken.answer([Outcome(one) for one in taken.handles])))
        assert answer.status.code == pb.OK
        assert [(one.message_id, one.receipt_handle, one.status.code) for one in answer.entries] == [
            (*entry, pb.OK) for entry in entries
        ]


def test_other_acknowledgements_are_python_s() -> None:
    lite = ack_request(("a", "b"))
    lite.entries[0].lite_topic = "l"
    for given in (ack_request(), ack_request(("a", "")), ack_request(("a", "é")), lite):
        assert compiled_acks(given.SerializeToString()) is None
    no_topic = ack_request(("a", "b"))
    no_topic.ClearField("topic")
    assert compiled_acks(no_topic.SerializeToString()) is None
