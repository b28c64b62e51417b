"""At which of several stores a call is made, and where it goes on."""

from collections.abc import Callable
from typing import Any

import grpc
import pytest

from tandemmq.client.stores_channel import stores_channel

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

    def method(self, name: str) -> Callable[[Any], Any]:
        channel: Any = stores_channel((A, B), self.dial)
        made: Callable[[Any], Any] = channel.unary_unary(f"/tandemmq.store.v1.Store/{name}")
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
