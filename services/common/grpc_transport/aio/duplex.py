"""Duplex: a bidirectional call without tasks, for two sides that talk all the time."""

from collections.abc import Callable
from typing import Protocol, TypeVar

import grpc

from tandemmq.common.grpc_transport.aio.client_calls import StreamStreamCall

Q_contra = TypeVar("Q_contra", contravariant=True)
R_co = TypeVar("R_co", covariant=True)


class Duplex(Protocol[Q_contra, R_co]):
    """A bidirectional call without tasks: see StreamStreamCall for each."""

    def write_now(self, request: Q_contra, /) -> bool:
        """Send without waiting."""
        ...

    def flush(self) -> None:
        """Give to the socket what was written, now."""
        ...

    def listen(
        self,
        on_message: Callable[[R_co], object],
        *,
        on_end: Callable[[grpc.StatusCode, str], object] | None = None,
        on_writable: Callable[[], object] | None = None,
    ) -> None:
        """Hand answers to a function."""
        ...

    def cancel(self) -> bool:
        """Give the call up."""
        ...

    def done(self) -> bool:
        """The call has its status."""
        ...


Q = TypeVar("Q")
R = TypeVar("R")


def duplex(call: "grpc.aio.StreamStreamCall[Q, R]") -> Duplex[Q, R]:
    """A bidirectional call of our channel, with what grpc.aio's calls have not. Raises TypeError for grpcio's."""
    if not isinstance(call, StreamStreamCall):
        raise TypeError(f"a call of tandemmq.common.grpc_transport.channel is needed, not {type(call).__name__}")
    return call
