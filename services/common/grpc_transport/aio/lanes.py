"""Lanes: the compiled short cut of a server's connections, and what becomes of calls that leave it."""

from functools import partial
from typing import TYPE_CHECKING

from tandemmq.common.grpc_transport.aio.call import UnaryRequestCall
from tandemmq.common.grpc_transport.aio.flushing import FLUSH_AT
from tandemmq.common.grpc_transport.aio.handlers import DirectCall, HeldCall
from tandemmq.common.grpc_transport.http2.connection import Connection
from tandemmq.common.grpc_transport.rpc.call_head import CallHead

if TYPE_CHECKING:
    from tandemmq.common.grpc_transport.aio.protocol import Protocol
    from tandemmq.common.grpc_transport.aio.server import Server
    from tandemmq.common.grpc_transport.compiled.lane import Lane, LaneCall


class Lanes:
    """Makes the lanes of one server."""

    def __init__(self, server: "Server") -> None:
        """Raises ImportError where they are not built."""
        from tandemmq.common.grpc_transport.compiled.head_scan import HeadScan
        from tandemmq.common.grpc_transport.compiled.lane import Lane

        self._server = server
        self._scan = HeadScan(server.methods.short_ways, server.limits.max_header_list_size)
        self._make = Lane

    def lane(self, protocol: "Protocol") -> "Lane":
        """That of a connection whose peer is known."""
        view, conclude = partial(_view, protocol.connection), partial(_conclude, protocol)
        budget = self._server.budget
        return self._make(
            protocol.connection, self._scan, protocol.peer, budget, protocol.flush, FLUSH_AT, view, conclude
        )


def _view(connection: Connection, block: bytes) -> CallHead:
    head = connection.head(block)
    view: CallHead | None = head.view
    if view is None:
        view = head.view = CallHead(head)
    return view


def _conclude(
    protocol: "Protocol",
    block: bytes,
    stream_id: int,
    increment: int,
    size: int,
    message: bytes,
    shown: "LaneCall",
    answer: bytes | HeldCall | None,
    failure: Exception | None,
) -> None:
    """Go on with a call whose frames the lane has read, and whose short way it has asked: with what came of that.

    `increment`: what its window was opened by; `size`: bytes of its DATA. `shown` is what the short way was shown.
    """
    connection = protocol.connection
    view = _view(connection, block)
    method = view.method or protocol.server.methods.find(view)
    assert method is not None, "it has a short way"
    call = UnaryRequestCall(protocol, connection, stream_id, view, method)
    connection.streams[stream_id] = call
    call.opened()
    call.send_window += increment
    call.received = size
    call.remote_ended = True
    shown.become(call)

    def said(_message: bytes, _call: DirectCall) -> bytes | HeldCall | None:
        if failure is not None:
            raise failure
        return answer

    call.go_on_with(message, said)
