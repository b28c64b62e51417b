"""Metadata of a whole channel: it goes with every call, and is asked for anew at each."""

from collections.abc import AsyncIterator
from typing import Any

import grpc
import pytest

from tandemmq.common.grpc_transport import channel
from tests.integration.grpc_transport.hosting import OWN, hosted, sending, within


def heard(context: Any) -> bytes:
    """The pairs of the caller whose keys begin with `x-`, in their order."""
    return b" ".join(f"{key}={value}".encode() for key, value in context.invocation_metadata() if key.startswith("x-"))


async def answer(_request: bytes, context: Any) -> bytes:
    return heard(context)


async def collect(requests: AsyncIterator[bytes], context: Any) -> bytes:
    assert [request async for request in requests] == [b"a", b"b"]
    return heard(context)


async def stream(_request: bytes, context: Any) -> AsyncIterator[bytes]:
    yield heard(context)


async def converse(requests: AsyncIterator[bytes], context: Any) -> AsyncIterator[bytes]:
    async for _ in requests:
        yield heard(context)


async def test_every_kind_of_call_carries_it() -> None:
    own: list[tuple[str, str]] = [("x-who", "first")]
    async with (
        hosted("fast", unary=answer, into=collect, out=stream, both=converse) as it,
        channel(it.target, metadata=lambda: own) as made,
    ):
        unary, out = made.unary_unary(f"/{OWN}/unary"), made.unary_stream(f"/{OWN}/out")
        into, both = made.stream_unary(f"/{OWN}/into"), made.stream_stream(f"/{OWN}/both")
        assert await within(unary(b"")) == b"x-who=first"
        assert [one async for one in out(b"")] == [b"x-who=first"]
        assert await within(into(sending(b"a", b"b"))) == b"x-who=first"
        assert [one async for one in both(sending(b"a"))] == [b"x-who=first"]
        own[:] = [("x-who", "second")]
        assert await within(unary(b"")) == b"x-who=second"
        assert await within(unary(b"", metadata=(("x-more", "mine"),))) == b"x-who=second x-more=mine"
        own.clear()
        assert await within(unary(b"")) == b""


async def test_what_cannot_be_sent_fails_at_the_call() -> None:
    async with hosted("fast", unary=answer) as it, channel(it.target, metadata=lambda: [("x-bad", "\n")]) as made:
        with pytest.raises(ValueError, match="x-bad"):
            made.unary_unary(f"/{OWN}/unary")(b"")
        assert made.get_state() is grpc.ChannelConnectivity.IDLE
