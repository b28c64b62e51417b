"""ReceiveStream: messages for a group by credit, how a stream ends, and what becomes of what it gave."""

import queue
import signal
import threading
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, cast

import grpc
import pytest

from tandemmq.client import StoreClient, decode_records
from tandemmq.delivery.v1 import delivery_pb2 as pb
from tandemmq.delivery.v1.delivery_pb2_grpc import DeliveryStub
from tandemmq.store.v1.store_pb2 import Credit
from tests.contract.refusals import statuses
from tests.contract.store_process import StoreProcess
from tests.contract.test_delivery import acknowledge, receive, receive_all

GROUP = "streaming"
SHORT_MS = 1_000
"""The shortest invisible time: what is not acknowledged comes again after it."""


class Side:
    """The client's side of a stream, written to from a test."""

    def __init__(self, *requests: pb.ReceiveStreamRequest) -> None:
        self._queue: queue.Queue[pb.ReceiveStreamRequest | None] = queue.Queue()
        for request in requests:
            self._queue.put(request)

    def __iter__(self) -> Iterator[pb.ReceiveStreamRequest]:
        while (request := self._queue.get()) is not None:
            yield request

    def credit(self, **amounts: int) -> None:
        self._queue.put(pb.ReceiveStreamRequest(credit=Credit(**amounts)))

    def close(self) -> None:
        self._queue.put(None)


def subscription(topic: str, *, messages: int = 0, size: int = 0, **fields: Any) -> pb.ReceiveStreamRequest:
    request = pb.ReceiveRequest(**({"group": GROUP, "topic": topic} | fields))
    return pb.ReceiveStreamRequest(subscribe=request, initial_credit=Credit(messages=messages, bytes=size))


def opened(stub: DeliveryStub, side: Iterable[pb.ReceiveStreamRequest]) -> Any:
    return cast(Any, stub.ReceiveStream(iter(side), timeout=60))


def take(call: Any, count: int) -> list[pb.ReceivedMessage]:
    """The next messages of a stream, and no more than that."""
    found: list[pb.ReceivedMessage] = []
    while len(found) < count:
        found += next(call).messages
    assert len(found) == count
    return found


def numbers(messages: Sequence[pb.ReceivedMessage]) -> list[int]:
    return sorted(int(decode_records(one.record)[0].body) for one in messages)


def fill(client: StoreClient, topic: str, begin: int, end: int, **more: Any) -> None:
    for number in range(begin, end):
        client.send(topic, b"%d" % number, **more)


def test_what_is_there_and_then_what_comes(client: StoreClient, delivery: DeliveryStub) -> None:
    fill(client, "rs-comes", 0, 20)
    side = Side(subscription("rs-comes", max_messages=8))
    call = opened(delivery, side)
    given = take(call, 20)
    assert numbers(given) == list(range(20))
    assert {one.delivery_number for one in given} == {1}
    fill(client, "rs-comes", 20, 21)
    given += take(call, 1)
    outcomes = acknowledge(delivery, GROUP, "rs-comes", *(one.handle for one in given))
    assert not any(one.HasField("refusal") for one in outcomes)
    side.close()
    assert list(call) == []


def test_no_answer_has_more_than_was_asked_for(client: StoreClient, delivery: DeliveryStub) -> None:
    fill(client, "rs-most", 0, 10)
    answers = list(opened(delivery, [subscription("rs-most", max_messages=4)]))
    sizes = [len(answer.messages) for answer in answers]
    assert sum(sizes) == 10
    assert max(sizes) <= 4


def test_not_one_message_above_the_credit(client: StoreClient, delivery: DeliveryStub) -> None:
    """What the stream has no credit for is free for others at once."""
    fill(client, "rs-credit", 0, 9)
    side = Side(subscription("rs-credit", messages=3))
    call = opened(delivery, side)
    given = take(call, 3)
    side.credit(messages=2)
    given += take(call, 2)
    others = receive_all(delivery, GROUP, "rs-credit", 4)
    assert numbers([*given, *others]) == list(range(9))
    side.close()
    assert list(call) == []


def test_credit_in_bytes_gives_at_least_one_message(client: StoreClient, delivery: DeliveryStub) -> None:
    fill(client, "rs-bytes", 0, 3, queue_id=0)
    side = Side(subscription("rs-bytes", size=1))
    call = opened(delivery, side)
    first = take(call, 1)
    size = len(first[0].record)
    side.credit(bytes=size)  # the first one was on credit: of this, one byte is left
    second = take(call, 1)
    assert numbers([*first, *second]) == [0, 1]
    assert numbers(receive(delivery, GROUP, "rs-bytes")) == [2]
    side.close()
    assert list(call) == []


def test_a_closed_side_ends_the_stream_when_all_is_sent(client: StoreClient, delivery: DeliveryStub) -> None:
    fill(client, "rs-closed", 0, 40)
    answers = list(opened(delivery, [subscription("rs-closed", max_messages=16)]))
    assert numbers([one for answer in answers for one in answer.messages]) == list(range(40))


def test_a_closed_side_ends_the_stream_when_its_credit_is_used(client: StoreClient, delivery: DeliveryStub) -> None:
    fill(client, "rs-used", 0, 10)
    answers = list(opened(delivery, [subscription("rs-used", messages=6)]))
    assert sum(len(answer.messages) for answer in answers) == 6
    assert len(receive_all(delivery, GROUP, "rs-used", 4)) == 4


def test_only_what_the_filter_takes(client: StoreClient, delivery: DeliveryStub) -> None:
    fill(client, "rs-tags", 0, 5, tag="sand")
    fill(client, "rs-tags", 5, 8, tag="gold")
    [*answers] = opened(delivery, [subscription("rs-tags", filter=pb.Filter(expression="gold"))])
    assert numbers([one for answer in answers for one in answer.messages]) == [5, 6, 7]


def test_streams_of_a_group_share_its_messages(client: StoreClient, delivery: DeliveryStub) -> None:
    sides = [Side(subscription("rs-share", messages=10)) for _ in range(3)]
    fill(client, "rs-share", 0, 30)
    calls = [opened(delivery, side) for side in sides]
    given = [take(call, 10) for call in calls]
    assert numbers([one for some in given for one in some]) == list(range(30))
    for side in sides:
        side.close()
    assert [list(call) for call in calls] == [[], [], []]


def test_what_is_not_acknowledged_comes_again_in_the_same_stream(client: StoreClient, delivery: DeliveryStub) -> None:
    """Exactly what is left: the acknowledged one of the two does not."""
    fill(client, "rs-again", 0, 2, queue_id=0)
    side = Side(subscription("rs-again", invisible_ms=SHORT_MS))
    call = opened(delivery, side)
    first, second = take(call, 2)
    acknowledge(delivery, GROUP, "rs-again", first.handle)
    (again,) = take(call, 1)
    assert (again.delivery_number, numbers([again])) == (2, numbers([second]))
    acknowledge(delivery, GROUP, "rs-again", again.handle)
    side.close()
    assert list(call) == []


@pytest.mark.slow
def test_a_stream_that_is_left_keeps_nothing_for_itself(own_store: StoreProcess) -> None:
    """Streams that wait with credit are cancelled: what comes afterwards goes to others, within a second."""
    with own_store.client() as client, own_store.delivery() as delivery:
        fill(client, "rs-left", 0, 4)
        with own_store.delivery() as leaving:
            sides = [Side(subscription("rs-left", messages=1, invisible_ms=SHORT_MS)) for _ in range(4)]
            calls = [opened(leaving, side) for side in sides]
            for call in calls:
                acknowledge(delivery, GROUP, "rs-left", *(one.handle for one in take(call, 1)))
            for call, side in zip(calls, sides, strict=True):
                side.credit(messages=10)
                call.cancel()
                side.close()
        fill(client, "rs-left", 4, 40)
        assert numbers(receive_all(delivery, GROUP, "rs-left", 36)) == list(range(4, 40))
    assert own_store.stop() == 0


BAD_STREAMS = {
    "nothing": ([], "INVALID_ARGUMENT"),
    "credit first": ([pb.ReceiveStreamRequest(credit=Credit(messages=1))], "INVALID_ARGUMENT"),
    "no such topic": ([subscription("nobody-receives")], "NOT_FOUND"),
    "no such queue": ([subscription("rs-bad", queue_id=77)], "OUT_OF_RANGE"),
    "no group": ([subscription("rs-bad", group="")], "INVALID_ARGUMENT"),
    "a filter that is none": (
        [subscription("rs-bad", filter=pb.Filter(kind=pb.SQL92, expression="price >"))], "INVALID_ARGUMENT",
    ),
    "a short invisible time": ([subscription("rs-bad", invisible_ms=SHORT_MS - 1)], "INVALID_ARGUMENT"),
    "too many messages": ([subscription("rs-bad", max_messages=1_000_000)], "INVALID_ARGUMENT"),
    "negative credit": ([subscription("rs-bad", messages=-1)], "INVALID_ARGUMENT"),
    "negative credit later": (
        [subscription("rs-bad"), pb.ReceiveStreamRequest(credit=Credit(messages=-1))], "INVALID_ARGUMENT",
    ),
    "subscribed twice": ([subscription("rs-bad"), subscription("rs-bad")], "INVALID_ARGUMENT"),
    "an empty request": ([pb.ReceiveStreamRequest()], "INVALID_ARGUMENT"),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD_STREAMS)
def test_bad_streams(client: StoreClient, delivery: DeliveryStub, name: str) -> None:
    client.send("rs-bad", b"0", queue_id=0)
    sent, code = BAD_STREAMS[name]
    side = Side(*sent)
    if not sent:
        side.close()
    with pytest.raises(grpc.RpcError) as raised:
        list(opened(delivery, side))
    side.close()
    found, status = statuses(raised.value)
    assert found == code
    assert status


def test_streams_end_when_the_store_stops(own_store: StoreProcess) -> None:
    with own_store.client() as client, own_store.delivery() as delivery:
        fill(client, "rs-stop", 0, 1)
        side = Side(subscription("rs-stop"))
        call = opened(delivery, side)
        assert numbers(take(call, 1)) == [0]
        stopping = threading.Thread(target=own_store.stop)
        stopping.start()
        with pytest.raises(grpc.RpcError) as raised:
            next(call)
        side.close()
        stopping.join()
        assert raised.value.code() is grpc.StatusCode.UNAVAILABLE
    assert own_store.wait() == 0


def test_after_kill_9_all_comes_again_but_what_was_acknowledged(own_store: StoreProcess) -> None:
    with own_store.client() as client, own_store.delivery() as delivery:
        fill(client, "rs-killed", 0, 30)
        side = Side(subscription("rs-killed", invisible_ms=SHORT_MS))
        given = take(opened(delivery, side), 30)
        done, left = given[:12], given[12:]
        acknowledge(delivery, GROUP, "rs-killed", *(one.handle for one in done))
        own_store.restart(signal.SIGKILL)
        side.close()
    with own_store.delivery() as delivery:
        side = Side(subscription("rs-killed"))
        call = opened(delivery, side)
        again = take(call, 18)
        assert numbers(again) == numbers(left)
        assert {one.delivery_number for one in again} == {2}
        side.close()
        assert list(call) == []
