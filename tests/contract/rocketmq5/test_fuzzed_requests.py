"""Requests whose fields hold anything: each is answered with a code that says what is wrong, and nothing is a fault."""

import random
import string
from collections.abc import Callable
from typing import Any

import grpc
import pytest
from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message

from tandemmq.rocketmq5.v2 import calls_pb2
from tandemmq.rocketmq5.v2 import resources_pb2 as pb
from tests.contract.rocketmq5.conftest import GATEWAY_IN_CAMPAIGNS
from tests.contract.rocketmq5.v2_client import SERVICE, V2Client, message
from tests.contract.store_process import StoreProcess

pytestmark = GATEWAY_IN_CAMPAIGNS

REQUESTS = 60
METHODS = [
    "QueryRoute",
    "QueryAssignment",
    "Heartbeat",
    "NotifyClientTermination",
    "SendMessage",
    "ReceiveMessage",
    "AckMessage",
    "ChangeInvisibleDuration",
    "ForwardMessageToDeadLetterQueue",
    "EndTransaction",
    "RecallMessage",
    "PullMessage",
    "UpdateOffset",
    "GetOffset",
    "QueryOffset",
    "SyncLiteSubscription",
]

TEXTS = ["", " ", "fuzzed", "%DLQ%fuzzed", "%RETRY%fuzzed", "TBW102", "a\x00b", "\x01\x02", "ä\u2028\U0001f600"]
TEXTS += ["*", "a||b", "x" * 128, "y" * 70_000, "(" * 5_000, "a = 1 AND " * 2_000, "%", "|", "../..", "-1", "9" * 400]
TEXTS += ["MTIz", "\ud7ff"]
NUMBERS = [0, 1, -1, 2, 31, 32, 33, 1_000, 2**31 - 1, -(2**31)]
LARGE = [*NUMBERS, 2**63 - 1, -(2**63), 10**12]

Fill = Callable[[random.Random, FieldDescriptor], Any]

_INTEGERS: dict[int, list[int]] = {
    FieldDescriptor.TYPE_INT32: NUMBERS,
    FieldDescriptor.TYPE_INT64: LARGE,
    FieldDescriptor.TYPE_ENUM: [*range(8), 77, -5],
}


def value(chance: random.Random, field: FieldDescriptor) -> Any:
    """Anything that a field that is no message may hold."""
    if field.type in _INTEGERS:
        return chance.choice(_INTEGERS[field.type])
    if field.type == FieldDescriptor.TYPE_STRING:
        return chance.choice([*TEXTS, "".join(chance.choices(string.printable, k=20))])
    if field.type == FieldDescriptor.TYPE_BYTES:
        return chance.choice([b"", b"body", b"\x1f\x8b\x08", b"\xff" * 40_000])
    if field.type == FieldDescriptor.TYPE_BOOL:
        return chance.random() < 0.5
    return chance.choice([0.0, -1.5, float("inf"), float("nan")])


def fill(chance: random.Random, into: Message, depth: int = 0) -> None:
    """Sets most fields of a message, and leaves out some."""
    described: Any = into.DESCRIPTOR
    for field in described.fields:
        if chance.random() < 0.25 or depth > 4:
            continue
        if field.message_type is not None and field.message_type.GetOptions().map_entry:
            for _ in range(chance.randrange(3)):
                getattr(into, field.name)[chance.choice(TEXTS[:11])] = chance.choice(TEXTS[:13])
        elif field.message_type is not None:
            several = field.is_repeated
            for _ in range(chance.randrange(4) if several else 1):
                fill(chance, getattr(into, field.name).add() if several else getattr(into, field.name), depth + 1)
        elif field.is_repeated:
            getattr(into, field.name).extend(value(chance, field) for _ in range(chance.randrange(4)))
        else:
            setattr(into, field.name, value(chance, field))


def likely(chance: random.Random, request: Any) -> None:
    """Names that exist, most of the time: what stands behind the names is to be reached."""
    for field in request.DESCRIPTOR.fields:
        if field.name in ("group", "topic") and chance.random() < 0.8:
            getattr(request, field.name).CopyFrom(pb.Resource(name="fuzzed"))
    if "message_queue" in request.DESCRIPTOR.fields_by_name:
        request.message_queue.topic.CopyFrom(pb.Resource(name="fuzzed"))
    if isinstance(request, calls_pb2.SendMessageRequest) and chance.random() < 0.8:
        for one in request.messages:
            one.topic.CopyFrom(pb.Resource(name="fuzzed"))
            one.system_properties.message_id = one.system_properties.message_id or "id"


def statuses(client: V2Client, method: str, request: Any) -> list[int]:
    """The codes of an answer."""
    if method not in ("ReceiveMessage", "PullMessage"):
        answer = client.ask(method, request)
        return [answer.status.code, *(one.status.code for one in getattr(answer, "entries", ()))]
    call = client.channel.unary_stream(
        f"/{SERVICE}/{method}",
        type(request).SerializeToString,
        getattr(calls_pb2, f"{method}Response").FromString,
    )
    for seconds in (0.8, 10, 60):  # a poll ends with its call: a short one, where the machine is not busy
        try:
            parts = list(call(request, timeout=seconds, metadata=client.metadata))
        except grpc.RpcError as error:
            if error.code() is not grpc.StatusCode.DEADLINE_EXCEEDED:
                raise
        else:
            return [one.status.code for one in parts if one.HasField("status")]
    raise AssertionError(f"{method} has no answer")


def no_faults(store: StoreProcess) -> None:
    """The store has logged no error. What grpcio says itself of bytes that are no request is its own."""
    told = [event for event in store.events() if event.get("logger") != "grpc._cython.cygrpc"]
    faults = [event for event in told if event.get("level") in ("error", "critical")]
    assert not faults, faults[:3]
    assert not [event for event in told if "Traceback" in str(event)]


@pytest.mark.parametrize("method", METHODS)
def test_any_request_has_an_answer_with_a_code(shared_store: StoreProcess, v2: V2Client, method: str) -> None:
    chance = random.Random(method)
    v2.route("fuzzed")
    for number in range(REQUESTS):
        request = getattr(calls_pb2, f"{method}Request")()
        fill(chance, request)
        likely(chance, request)
        codes = statuses(v2, method, request)
        assert codes, (number, str(request)[:500])
        for code in codes:
            assert code in pb.Code.values(), (number, code)
            assert code not in (pb.CODE_UNSPECIFIED, pb.INTERNAL_ERROR, pb.INTERNAL_SERVER_ERROR), (
                number,
                str(request)[:500],
            )
    no_faults(shared_store)
    assert v2.send(message("fuzzed")).status.code == pb.OK


def test_any_settings_are_answered_and_the_stream_goes_on(shared_store: StoreProcess, v2: V2Client) -> None:
    chance = random.Random("settings")
    stream = v2.stream()
    for _ in range(REQUESTS):
        settings = v2.producer("fuzzed")
        fill(chance, settings)
        stream.say(settings)
        assert stream.next().status.code in pb.Code.values()
    no_faults(shared_store)


def test_bytes_that_are_no_request_end_their_call_only(shared_store: StoreProcess, v2: V2Client) -> None:
    bad_text = b"\x0a\x06\x12\x04\xff\xfe\xfd\xfc"  # a resource whose name is no UTF-8
    for data in (b"\xff\xff\xff", bad_text, b"\x0a\xff\xff\xff\xff\x0f", b"\x00" * 100):
        for method in METHODS[:11]:  # the others have another field there
            raw: Any = v2.channel.unary_unary(f"/{SERVICE}/{method}")
            with pytest.raises(grpc.RpcError) as failed:
                raw(data, timeout=30, metadata=v2.metadata)
            assert failed.value.code() in (grpc.StatusCode.INTERNAL, grpc.StatusCode.UNKNOWN)  # the latter is grpcio's
    no_faults(shared_store)


def test_ten_thousand_receipts_and_a_hundred_large_ones_are_refused(v2: V2Client) -> None:
    names = {"group": pb.Resource(name="fuzzed"), "topic": pb.Resource(name="fuzzed")}
    many = [calls_pb2.AckMessageEntry(message_id="m", receipt_handle=f"r{number}") for number in range(10_000)]
    assert v2.ask("AckMessage", entries=many, **names).status.code == pb.BAD_REQUEST  # type: ignore[arg-type]
    large = [calls_pb2.AckMessageEntry(message_id="m" * 1_000, receipt_handle="r" * 1_000)] * 100
    answer = v2.ask("AckMessage", entries=large, **names)  # type: ignore[arg-type]
    assert {one.status.code for one in answer.entries} == {pb.INVALID_RECEIPT_HANDLE}


def test_a_compressed_request_that_grows_without_end_is_refused(v2: V2Client) -> None:
    method: Any = v2.channel.unary_unary(f"/{SERVICE}/SendMessage")
    with pytest.raises(grpc.RpcError, match="RESOURCE_EXHAUSTED|larger|exceed"):
        method(b"\x00" * (64 << 20), timeout=60, metadata=v2.metadata, compression=grpc.Compression.Gzip)
    assert v2.send(message("fuzzed")).status.code == pb.OK
