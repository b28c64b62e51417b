"""Answering: the server's side of a bidirectional call without tasks, for two sides that talk all the time."""

import asyncio
from collections.abc import Callable, Sequence
from typing import Any, Protocol, TypeVar

import grpc

from tandemmq.common.grpc_transport.aio.call import Call
from tandemmq.common.grpc_transport.aio.context import CallContext
from tandemmq.common.grpc_transport.aio.stream_call import StreamRequestCall

Q_co = TypeVar("Q_co", covariant=True)
R_contra = TypeVar("R_contra", contravariant=True)
Q = TypeVar("Q")
R = TypeVar("R")

_LENGTH_DELIMITED = 2
"""Protobuf's wire type of bytes."""


class Answering(Protocol[Q_co, R_contra]):
    """What a handler has of its call beside the context: see StreamRequestCall for each."""

    @property
    def over(self) -> bool:
        """Whether nothing can be sent any more: the call has ended, or its connection has."""
        ...

    def listen(self, on_message: Callable[[Q_co], object]) -> "asyncio.Future[None]":
        """Hand requests to a function."""
        ...

    def write_now(self, answer: R_contra, /) -> bool:
        """Send without waiting."""
        ...

    def flush(self) -> None:
        """Give to the socket what was written, now."""
        ...


def answering(context: "grpc.aio.ServicerContext[Q, R]") -> Answering[Q, R]:
    """The call of a handler of our server, with what grpc.aio's contexts have not. Raises TypeError for grpcio's."""
    if not isinstance(context, StreamRequestCall):
        raise TypeError(f"a streaming call of tandemmq.common.grpc_transport is needed, not {type(context).__name__}")
    return context


def answer_at_once(context: "grpc.aio.ServicerContext[Any, Any]", at_once: Callable[[bytes], bytes | None]) -> None:
    """Have a function asked first for the answer to a request, where a handler's requests come as bytes.

    See StreamRequestCall. Elsewhere all requests are read.
    """
    if isinstance(context, StreamRequestCall) and context.method.deserialize is None:
        context.answer_at_once(at_once)


def encoded_field(number: int, value: bytes) -> bytes:
    """A field of bytes as protobuf writes it."""
    return _field_head(number, len(value)) + value


def connection_of(context: "grpc.aio.ServicerContext[Any, Any]") -> Callable[[], bool]:
    """Tells, after the call too, whether its caller's connection is there. With contexts of grpcio it always is."""
    return context.protocol.connected if isinstance(context, CallContext) else lambda: True


def dialled(context: "grpc.aio.ServicerContext[Any, Any]") -> tuple[str, int] | None:
    """The address and port of ours that a caller has reached; None over unix sockets and with contexts of grpcio."""
    return context.protocol.dialled if isinstance(context, CallContext) else None


def append_field(context: "grpc.aio.ServicerContext[Any, Any]", number: int, value: bytes) -> bool:
    """Send a field of bytes at the end of the next answer: put into the message, it would be copied again and again.

    Fields may come in any order, so it is read as any other. `number` of a field that is not set in the message itself.
    False with contexts of grpcio: there the field must be set.
    """
    if not isinstance(context, CallContext):
        return False
    context.appended = (*context.appended, _field_head(number, len(value)), value)
    return True


async def write_all(context: "grpc.aio.ServicerContext[Any, Any]", answers: Sequence[bytes]) -> None:
    """Send several answers of a stream, each as bytes, of a method without serializer: together, if the server is ours.

    Waits while the caller or the network takes no more.
    """
    if isinstance(context, CallContext):
        await context.write_all(answers)
        return
    for answer in answers:
        await context.write(answer)


def _field_head(number: int, size: int) -> bytes:
    return _varint(number << 3 | _LENGTH_DELIMITED) + _varint(size)


def _varint(value: int) -> bytes:
    """A number of 0 or more as protobuf writes it: seven bits a byte, the lowest first; all but the last have bit 7."""
    digits = bytearray()
    while value > 0x7F:
        digits.append(value & 0x7F | 0x80)
        value >>= 7
    digits.append(value)
    return bytes(digits)


async def room_for(context: "grpc.aio.ServicerContext[Any, Any]", size: int) -> bool:
    """Before an answer of about `size` bytes is made: waits until the server may hold so much for this caller.

    False when it may not, for as long as a call is let wait: tell the caller to read what is there and ask again.
    Always True with contexts of grpcio.
    """
    return not isinstance(context, Call) or await context.room_for(size)
