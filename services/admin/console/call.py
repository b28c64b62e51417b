"""ConsoleCall: a call that came over HTTP, as its handler sees it."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, NoReturn

import grpc

from tandemmq.common.access.principal import Principal

Metadata = Iterable[tuple[str, str | bytes]]


class ConsoleCall(grpc.aio.ServicerContext[Any, Any]):
    """Stands in for gRPC's context. One a call; `close` it when its handler has ended."""

    def __init__(self, peer: str, principal: Principal | None) -> None:
        """`peer`: `http:127.0.0.1:4711`; `principal`: who calls, None where everybody may do everything."""
        self.principal = principal
        self._peer = peer
        self._code = grpc.StatusCode.OK
        self._details = ""
        self._trailing: Metadata = ()
        self._done = False
        self._callbacks: list[Callable[[Any], None]] = []

    def close(self) -> None:
        """The call is over."""
        self._done = True
        for callback in self._callbacks:
            callback(self)
        self._callbacks.clear()

    # -- what a handler may know --------------------------------------------------------------------------------------

    def peer(self) -> str:
        """Where the call comes from."""
        return self._peer

    def invocation_metadata(self) -> tuple[tuple[str, str | bytes], ...]:  # type: ignore[override]
        """None: who calls is known already, and secrets need not go further."""
        return ()

    def auth_context(self) -> Mapping[str, Iterable[bytes]]:
        """Nothing: browsers show no certificate."""
        return {}

    def peer_identities(self) -> Iterable[bytes] | None:
        """As `auth_context`."""
        return None

    def peer_identity_key(self) -> str | None:
        """As `auth_context`."""
        return None

    def time_remaining(self) -> float | None:  # type: ignore[override]
        """For ever: HTTP has no deadline. A browser that goes away cancels the handler."""
        return None

    def cancelled(self) -> bool:
        """A handler whose caller has gone is cancelled as a task; it need not ask."""
        return False

    def done(self) -> bool:
        """The call has ended."""
        return self._done

    def add_done_callback(self, callback: Callable[[Any], None]) -> None:
        """`callback(context)` is called when the call ends."""
        self._callbacks.append(callback)

    # -- what a handler may say ---------------------------------------------------------------------------------------

    def code(self) -> "grpc.StatusCode":
        """What `set_code` or `abort` said."""
        return self._code

    def set_code(self, code: "grpc.StatusCode") -> None:
        """The status of the call."""
        self._code = code

    def details(self) -> str:
        """The text beside the status."""
        return self._details

    def set_details(self, details: str) -> None:
        """The text beside the status."""
        self._details = details

    def trailing_metadata(self) -> Metadata:  # type: ignore[override]
        """What goes beside the status."""
        return self._trailing

    def set_trailing_metadata(self, trailing_metadata: Metadata) -> None:
        """What goes beside the status."""
        self._trailing = trailing_metadata

    def set_compression(self, compression: grpc.Compression) -> None:
        """Answers over HTTP go as they are."""

    def disable_next_message_compression(self) -> None:
        """As `set_compression`."""

    async def abort(self, code: "grpc.StatusCode", details: str = "", trailing_metadata: Metadata = ()) -> NoReturn:
        """End the call with an error. Always raises AbortError."""
        self._code, self._details, self._trailing = code, details, trailing_metadata
        raise grpc.aio.AbortError("the call was ended by its handler")

    async def abort_with_status(self, status: grpc.Status) -> NoReturn:
        """The same, from a `grpc.Status`."""
        await self.abort(status.code, status.details, status.trailing_metadata or ())

    async def send_initial_metadata(self, initial_metadata: Metadata) -> None:
        """HTTP's head has no place for it."""

    async def read(self) -> Any:
        """No method of Admin takes a stream of requests."""
        raise grpc.aio.UsageError("there is one request only")

    async def write(self, message: Any) -> None:
        """Streamed answers are generators."""
        raise grpc.aio.UsageError("answers are yielded")
