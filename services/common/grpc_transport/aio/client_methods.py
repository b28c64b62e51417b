"""The methods of a channel, as stubs call them: `grpc.aio`'s multi-callables."""

from collections.abc import AsyncIterable, Iterable
from typing import TYPE_CHECKING, Any

import grpc

from tandemmq.common.grpc_transport.aio.client_call import ClientMethod, Metadata
from tandemmq.common.grpc_transport.aio.client_calls import (
    StreamStreamCall,
    StreamUnaryCall,
    UnaryStreamCall,
    UnaryUnaryCall,
)

if TYPE_CHECKING:
    _StreamUnaryMultiCallable = grpc.aio.StreamUnaryMultiCallable[Any, Any]
    _StreamStreamMultiCallable = grpc.aio.StreamStreamMultiCallable[Any, Any]
else:  # in grpcio 1.71 these two cannot be subscripted
    _StreamUnaryMultiCallable = grpc.aio.StreamUnaryMultiCallable
    _StreamStreamMultiCallable = grpc.aio.StreamStreamMultiCallable


class _Callable:
    """A method that can be called."""

    def __init__(self, method: ClientMethod) -> None:
        self._method = method


class UnaryUnary(_Callable, grpc.aio.UnaryUnaryMultiCallable[Any, Any]):
    """A method of one request and one answer."""

    def __call__(
        self,
        request: Any,
        *,
        timeout: float | None = None,
        metadata: Metadata | None = None,
        credentials: Any = None,
        wait_for_ready: bool | None = None,
        compression: Any = None,
    ) -> UnaryUnaryCall:
        """Begins a call, to be awaited."""
        call = UnaryUnaryCall(self._method, timeout, metadata, wait_for_ready)
        call.send_one(request)
        self._method.channel.begin(call, credentials, compression)
        return call


class UnaryStream(_Callable, grpc.aio.UnaryStreamMultiCallable[Any, Any]):
    """A method of one request and a stream of answers."""

    def __call__(
        self,
        request: Any,
        *,
        timeout: float | None = None,
        metadata: Metadata | None = None,
        credentials: Any = None,
        wait_for_ready: bool | None = None,
        compression: Any = None,
    ) -> UnaryStreamCall:
        """Begins a call, to be read."""
        call = UnaryStreamCall(self._method, timeout, metadata, wait_for_ready)
        call.prepare()
        call.send_one(request)
        self._method.channel.begin(call, credentials, compression)
        return call


class StreamUnary(_Callable, _StreamUnaryMultiCallable):
    """A method of a stream of requests and one answer."""

    def __call__(
        self,
        request_iterator: "AsyncIterable[Any] | Iterable[Any] | None" = None,
        timeout: float | None = None,
        metadata: Metadata | None = None,
        credentials: Any = None,
        wait_for_ready: bool | None = None,
        compression: Any = None,
    ) -> StreamUnaryCall:
        """Begins a call, to be written and awaited."""
        call = StreamUnaryCall(self._method, timeout, metadata, wait_for_ready)
        self._method.channel.begin(call, credentials, compression)
        call.send_each(request_iterator)
        return call


class StreamStream(_Callable, _StreamStreamMultiCallable):
    """A method of streams both ways."""

    def __call__(
        self,
        request_iterator: "AsyncIterable[Any] | Iterable[Any] | None" = None,
        timeout: float | None = None,
        metadata: Metadata | None = None,
        credentials: Any = None,
        wait_for_ready: bool | None = None,
        compression: Any = None,
    ) -> StreamStreamCall:
        """Begins a call, to be written and read."""
        call = StreamStreamCall(self._method, timeout, metadata, wait_for_ready)
        call.prepare()
        self._method.channel.begin(call, credentials, compression)
        call.send_each(request_iterator)
        return call
