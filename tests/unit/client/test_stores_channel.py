"""At which of several stores a call is made, and where it goes on."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import grpc
import pytest

from tandemmq.client import StoreClient, aio
from tandemmq.client.stores_channel import READS, aio_stores_channel, stores_channel
from tandemmq.store.v1 import store_pb2

A, B, C = "a:1", "b:2", "c:3"


class Failure(grpc.RpcError):
    """A call's end."""

    def __init__(self, details: str, *trailers: tuple[str, str]) -> None:
        self._details = details
        self._trailers = trailers

    def code(self) -> grpc.StatusCode:
        return grpc.StatusCode.UNAVAILABLE

    def details(self) -> str:
        return self._details

    def trailing_metadata(self) -> Any:
        return self._trailers


NEVER_SENT = Failure("failed to connect to all addresses; last error: refused")
ANSWER_LOST = Failure("Socket closed")


def slave_of(leader: str) -> Failure:
    return Failure("a slave", ("rocketmq-status", "SERVICE_NOT_AVAILABLE"), ("tandem-master", leader))


class Stores:
    """Each address answers with its name, or fails."""

    def __init__(self, **failures: Failure) -> None:
        self.failures = failures
        self.asked: list[str] = []

    def method(self, name: str, service: str = "tandemmq.store.v1.Store") -> Callable[[Any], Any]:
        channel: Any = stores_channel((A, B), self.dial)
        made: Callable[[Any], Any] = channel.unary_unary(f"/{service}/{name}")
        return made

    def dial(self, address: str) -> Any:
        stores = self

        class Channel:
            def unary_unary(self, *_arguments: Any, **_options: Any) -> Callable[..., str]:
                return lambda request, **_options: stores.answer(address)

        return Channel()

    def answer(self, address: str) -> str:
        self.asked.append(address)
        if failure := self.failures.get(address[0]):
            raise failure
        return address


@pytest.mark.parametrize("name", ["Send", "Pull"])
def test_a_master_that_is_told_and_cannot_be_reached_is_not_the_end(name: str) -> None:
    """What a slave tells may be an address inside of a cluster; the master is found at the one that was given."""
    stores = Stores(a=slave_of(C), c=NEVER_SENT)
    assert stores.method(name)(None) == B
    assert stores.asked == [A, C, B]


def test_each_is_asked_once() -> None:
    stores = Stores(a=slave_of(C), b=slave_of(C), c=NEVER_SENT)
    with pytest.raises(Failure, match="a slave"):
        stores.method("Send")(None)
    assert stores.asked == [A, C, B]


def test_what_may_be_stored_is_not_sent_again() -> None:
    stores = Stores(a=ANSWER_LOST)
    send = stores.method("Send")
    with pytest.raises(Failure):
        send(None)
    assert stores.asked == [A]
    assert send(None) == B


def test_what_only_reads_is_asked_again() -> None:
    stores = Stores(a=ANSWER_LOST)
    assert stores.method("Pull")(None) == B
    assert stores.asked == [A, B]


@pytest.mark.parametrize(
    ("service", "name"),
    [
        ("tandemmq.delivery.v1.Operations", "CreateTopic"),
        ("tandemmq.delivery.v1.Operations", "TryMessage"),
        ("tandemmq.delivery.v1.Delivery", "Receive"),
        ("tandemmq.admin.v1.Admin", "ResendMessages"),
        ("tandemmq.replication.v1.Replication", "Promote"),
        ("tandemmq.of.tomorrow", "Anything"),
    ],
)
def test_what_changes_something_is_not_done_twice(service: str, name: str) -> None:
    stores = Stores(a=ANSWER_LOST)
    call = stores.method(name, service)
    with pytest.raises(Failure):
        call(None)
    assert stores.asked == [A]
    assert call(None) == B


def test_what_changes_something_goes_on_where_it_never_arrived() -> None:
    stores = Stores(a=NEVER_SENT)
    assert stores.method("CreateTopic", "tandemmq.delivery.v1.Operations")(None) == B


CHANGES = frozenset(
    {
        "Acknowledge", "Adopt", "CancelJob", "ChangeInvisible", "CommitOffsets", "CreateGroup", "CreateTopic",
        "DeleteGroup", "DeleteGroups", "DeleteOffsets", "DeleteTopic", "DeleteTopics", "Demote", "EndTransaction",
        "Fence", "Follow", "FollowMaster", "ForwardToDeadLetters", "Heartbeat", "Join", "Leave", "Promote",
        "PromoteNode", "PutDelayOffsets", "PutGroup", "PutGroups", "PutTopic", "PutTopics", "Recall", "Receive",
        "Remember", "ResendMessages", "ResetOffsets", "Send", "SendBack", "SendBatch", "SendMessage", "ShowThreads",
        "StartJob", "TryMessage",
    }
)  # fmt: skip


def test_of_each_call_it_is_known_whether_it_changes_something() -> None:
    contracts = (Path(__file__).resolve().parents[3] / "protos" / "tandemmq").rglob("*.proto")
    unary = re.compile(r"rpc (\w+)\((?!stream )[\w.]+\) returns \((?!stream )")
    names = {name for path in contracts for name in unary.findall(path.read_text())}
    assert names == READS | CHANGES
    assert not READS & CHANGES


class Log:
    """A channel to a store that says what its log is like."""

    def __init__(self, state: store_pb2.LogState) -> None:
        self._answer = store_pb2.GetLogResponse(state=state)

    def unary_unary(self, *_arguments: Any, **_options: Any) -> Callable[..., Any]:
        return lambda request, **_options: self._answer

    unary_stream = stream_unary = stream_stream = unary_unary


class AioLog(Log):
    """The same for asyncio."""

    def unary_unary(self, *_arguments: Any, **_options: Any) -> Callable[..., Any]:
        async def answer(_request: object, timeout: float) -> store_pb2.GetLogResponse:
            return self._answer

        return answer


SLAVE = store_pb2.LogState(not_writable_reason="a slave")
FULL = store_pb2.LogState(not_writable_reason="the disk is full", master=True)
OLD_RELEASE = store_pb2.LogState(writable=True)


@pytest.mark.parametrize(("other", "found"), [(FULL, True), (OLD_RELEASE, True), (SLAVE, False)])
async def test_a_master_is_found_that_takes_nothing_at_present(other: store_pb2.LogState, found: bool) -> None:
    """Streams of Spark read it; they do not wait until its disk has room again."""
    states = {A: SLAVE, B: other}
    plain: Any = stores_channel((A, B), lambda address: cast(grpc.Channel, Log(states[address])))
    assert StoreClient((A, B), channel=plain).find_master() is found
    waiting: Any = aio_stores_channel((A, B), lambda address: cast(grpc.aio.Channel, AioLog(states[address])))
    assert await aio.StoreClient((A, B), channel=waiting).find_master() is found
    assert plain.places.current == waiting.places.current == (B if found else A)
