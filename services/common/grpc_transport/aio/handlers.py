"""Methods: which handler answers a path, as generated code, generic handlers and interceptors say."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from enum import Enum
from typing import Any, NamedTuple, Protocol

import grpc

from tandemmq.common.grpc_transport.rpc.call_head import CallHead
from tandemmq.common.grpc_transport.rpc.metadata import Metadatum


class CallDetails(NamedTuple):
    """`grpc.HandlerCallDetails`: what generic handlers and interceptors see of a call."""

    method: str
    invocation_metadata: tuple[Metadatum, ...]


class DirectCall(Protocol):
    """What the short way of a method sees of a call."""

    def peer(self) -> str:
        """See `grpc.aio.ServicerContext`."""
        ...

    def invocation_metadata(self) -> Sequence[tuple[str, str | bytes]]:
        """See `grpc.aio.ServicerContext`; while the short way is asked, or the call held. Raises CallFailure."""
        ...

    def answer_later(self, answer: bytes) -> None:
        """Answer a call for which HELD was given before. Never raises, also where nobody waits any more."""
        ...

    def hand_over(self, message: bytes) -> None:
        """Have the handler answer a call for which HELD was given before, to its request. Never raises."""
        ...

    def end_with(self, code: grpc.StatusCode, details: str, trailing: tuple[tuple[str, str], ...]) -> None:
        """End a call for which HELD was given before with an error. Never raises."""
        ...

    @property
    def gone(self) -> bool:
        """Whether nobody waits for the answer any more; of a call for which HELD was given before."""
        ...

    @property
    def has_room(self) -> bool:
        """Whether an answer that is not small may be made at once: nothing is short, and none waits before it."""
        ...


class HeldCall(Enum):
    """See HELD."""

    HELD = 0


HELD = HeldCall.HELD
"""The answer comes later, by `DirectCall.answer_later`."""

Direct = Callable[[bytes, DirectCall], bytes | HeldCall | None]
"""The short way of a method with one request: from its bytes to those of the answer, or HELD. It must not block.

Of a method that answers with a stream, the answer is all messages of the stream, each with its prefix (`framed`). None:
it does not answer this one, and has done nothing of it; the handler does."""


class Method:
    """A handler, its parts at hand."""

    __slots__ = (
        "asks_for_room",
        "behavior",
        "deserialize",
        "direct",
        "largest",
        "request_streaming",
        "response_streaming",
        "serialize",
    )

    def __init__(self, handler: "grpc.RpcMethodHandler[Any, Any]") -> None:
        """Takes the behavior that fits the kind of the handler; the others are None."""
        self.request_streaming = bool(handler.request_streaming)
        self.response_streaming = bool(handler.response_streaming)
        if self.request_streaming:
            behavior = handler.stream_stream if self.response_streaming else handler.stream_unary
        else:
            behavior = handler.unary_stream if self.response_streaming else handler.unary_unary
        assert behavior is not None
        self.behavior: Callable[[Any, Any], Any] = behavior
        self.deserialize: Callable[[bytes], Any] | None = handler.request_deserializer
        self.serialize: Callable[[Any], bytes] | None = handler.response_serializer
        self.direct: Direct | None = None
        """Asked before the handler."""
        self.asks_for_room = False
        """Its handler says itself how large an answer may be, by `room_for`: nothing need be guessed before it."""
        self.largest = 0
        """Bytes of the largest answer so far, of those that are large: what the next one is taken to need."""


class Methods:
    """All methods of a server."""

    def __init__(self, interceptors: "Sequence[grpc.aio.ServerInterceptor]" = ()) -> None:
        for interceptor in interceptors:
            if not isinstance(interceptor, grpc.aio.ServerInterceptor):
                raise ValueError(f"{interceptor!r} is no grpc.aio.ServerInterceptor")
        self.intercepted = bool(interceptors)
        self.short_ways: dict[bytes, Method] = {}
        """Methods that have one, by their paths as they stand in header blocks."""
        self._registered: dict[str, Method] = {}
        self._handlers: dict[str, grpc.RpcMethodHandler[Any, Any]] = {}
        self._generic: list[grpc.GenericRpcHandler] = []
        self._interceptors = tuple(interceptors)

    def register(self, service: str, handlers: "Mapping[str, grpc.RpcMethodHandler[Any, Any]]") -> None:
        """Methods of a service by their names."""
        for name, handler in handlers.items():
            self._handlers[f"/{service}/{name}"] = handler
            self._registered[f"/{service}/{name}"] = Method(handler)
            self.short_ways.pop(f"/{service}/{name}".encode(), None)

    def set_direct(self, path: str, direct: Direct) -> None:
        """Give a registered method with one request a short way. With interceptors it is not used. Raises KeyError."""
        method = self._registered[path]
        assert not method.request_streaming
        method.direct = direct
        self.short_ways[path.encode()] = method

    def deserializer(self, path: str) -> Callable[[bytes], Any]:
        """What makes a message of the bytes of a registered method's requests. Raises KeyError."""
        return self._registered[path].deserialize or bytes

    def take_bytes(self, path: str) -> None:
        """Give the requests of a registered method to its handler as they came. Raises KeyError.

        With interceptors they are messages as before. A call that has begun gives its next ones as bytes.
        """
        self._registered[path].deserialize = None

    def add_generic(self, handlers: Sequence[grpc.GenericRpcHandler]) -> None:
        """Handlers that say themselves what they answer; asked in this order, after the registered methods."""
        for handler in handlers:
            if not hasattr(handler, "service"):
                raise AttributeError(f'"{handler}" must conform to grpc.GenericRpcHandler: it has no method "service"')
        self._generic += handlers

    def find(self, head: CallHead) -> Method | None:
        """What answers a call, interceptors aside; None: nothing does. Remembered in the head, if it is for all."""
        method = self._registered.get(head.path)
        if method is not None:
            head.method = method
            return method
        if self._generic:  # asked each time: they may look at the metadata
            handler = self._lookup(CallDetails(head.path, head.metadata))
            if handler is not None:
                return Method(handler)
        return None

    async def intercept(self, details: CallDetails) -> Method | None:
        """What answers a call when every interceptor has had its say."""
        handler = await self._continuation(0)(details)
        return None if handler is None else Method(handler)

    def _continuation(self, index: int) -> "Callable[[Any], Awaitable[grpc.RpcMethodHandler[Any, Any] | None]]":
        async def proceed(details: Any) -> "grpc.RpcMethodHandler[Any, Any] | None":
            if index == len(self._interceptors):
                return self._lookup(details)
            interceptor: Any = self._interceptors[index]
            handler: grpc.RpcMethodHandler[Any, Any] | None = await interceptor.intercept_service(
                self._continuation(index + 1), details
            )
            return handler

        return proceed

    def _lookup(self, details: Any) -> "grpc.RpcMethodHandler[Any, Any] | None":
        known = self._handlers.get(details.method)
        if known is not None:
            return known
        for generic in self._generic:
            handler = generic.service(details)
            if handler is not None:
                return handler
        return None


def _nobody(_request: Any, _context: Any) -> None:
    """Never called."""


UNDECIDED = Method(grpc.stream_stream_rpc_method_handler(_nobody))
"""The method of a call whose interceptors have not chosen yet."""
