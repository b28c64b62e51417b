"""Lanes: the compiled short cut of a server's connections, and what becomes of calls that leave it."""

from functools import partial
from typing import TYPE_CHECKING

from tandemmq.common.grpc_transport.aio.call import UnaryRequestCall
from tandemmq.common.grpc_transport.aio.flushing import FLUSH_AT
from tandemmq.common.grpc_transport.aio.handlers import HELD, Direct, DirectCall, HeldCall
from tandemmq.common.grpc_transport.http2.connection import Connection
from tandemmq.common.grpc_transport.rpc.call_head import CallHead

if TYPE_CHECKING:
    from tandemmq.common.grpc_transport.aio.protocol import Protocol
    from tandemmq.common.grpc_transport.aio.server import Server
    from tandemmq.common.grpc_transport.compiled.begun_calls import BegunCall
    from tandemmq.common.grpc_transport.compiled.lane import Lane
    from tandemmq.common.grpc_transport.compiled.lane_call import LaneCall

READS_BEFORE = 32
"""Reads of a connection that were all its lane's, before the reactor does them."""
LEAST_BUSY = 4
"""Connections of which that is true, before the reactor does anything."""


class Lanes:
    """Makes the lanes of one server."""

    def __init__(self, server: "Server") -> None:
        """Raises ImportError where they are not built."""
        from tandemmq.common.grpc_transport.compiled.begun_calls import BegunCalls
        from tandemmq.common.grpc_transport.compiled.head_scan import HeadScan
        from tandemmq.common.grpc_transport.compiled.lane import Lane
        from tandemmq.common.grpc_transport.compiled.reactor import Reactor

        self._server = server
        self._scan = HeadScan(server.methods.short_ways, server.limits.max_header_list_size)
        self._make = Lane
        self._begun = BegunCalls()
        self.reactor = Reactor(server.loop, server.limits.turn_seconds / 2, READS_BEFORE, LEAST_BUSY)
        """Of sockets without TLS."""

    @property
    def taken(self) -> int:
        """Calls that they took so far."""
        return self._begun.taken

    def close(self) -> None:
        """The server has stopped."""
        self.reactor.close()

    def lane(self, protocol: "Protocol") -> "Lane":
        """That of a new connection."""
        connection = protocol.connection
        pythons = (
            partial(_leave, connection), partial(_conclude, protocol), partial(_resume, protocol),
            partial(_go_on, protocol), partial(_finish, protocol),
        )  # fmt: skip
        return self._make(protocol, self._scan, self._begun, HELD, FLUSH_AT, partial(_view, connection), pythons)


def _view(connection: Connection, block: bytes) -> CallHead:
    head = connection.head(block)
    view: CallHead | None = head.view
    if view is None:
        view = head.view = CallHead(head)
    return view


def _call(protocol: "Protocol", block: bytes, stream_id: int) -> UnaryRequestCall:
    """One whose request has come; its stream is known from here on."""
    connection = protocol.connection
    view = _view(connection, block)
    method = view.method or protocol.server.methods.find(view)
    assert method is not None, "it has a short way"
    call = connection.streams[stream_id] = UnaryRequestCall(protocol, connection, stream_id, view, method)
    call.remote_ended = True
    return call


def _leave(connection: Connection, begun: "list[BegunCall]") -> None:
    """Go on with calls that the lane has seen begin: what ends their requests is not plain, or not here yet."""
    for block, stream_id, increment in begun:
        connection.block(block, stream_id, False)
        stream = connection.streams.get(stream_id)
        if increment and stream is not None:
            connection.sender.opened(stream, increment)


def _conclude(
    protocol: "Protocol",
    begun: "BegunCall",
    others: "list[BegunCall]",
    size: int,
    message: bytes,
    shown: "LaneCall",
    answer: bytes | HeldCall | None,
    failure: Exception | None,
) -> None:
    """Go on with a call whose frames the lane has read, and whose short way it has asked: with what came of that.

    `size`: bytes of its DATA. `shown` is what the short way was shown. `others` began before its request ended.
    """
    connection = protocol.connection
    block, stream_id, increment = begun
    call = _call(protocol, block, stream_id)
    call.opened()
    call.send_window += increment
    _leave(connection, others)
    call.received = size
    shown.become(call)
    call.go_on_with(message, _saying(answer, failure))


def _saying(answer: bytes | HeldCall | None, failure: Exception | None) -> Direct:
    """A short way that was asked already: what came of it."""

    def said(_message: bytes, _call: DirectCall) -> bytes | HeldCall | None:
        if failure is not None:
            raise failure
        return answer

    return said


def _resume(protocol: "Protocol", block: bytes, shown: "LaneCall", size: int, deadline: float | None) -> None:
    """Go on with a call that the lane holds, and whose answer does not leave in one piece.

    `size`: bytes of its request.
    """
    _stand_in(protocol, block, shown).go_on_waiting(size, deadline)


def _stand_in(protocol: "Protocol", block: bytes, shown: "LaneCall") -> UnaryRequestCall:
    """A call whose stream the lane has made; the windows go on where they are."""
    call = _call(protocol, block, shown.stream_id)
    call.send_window, call.received, call.granted = shown.send_window, shown.received, shown.granted
    shown.become(call)
    return call


def _go_on(
    protocol: "Protocol", block: bytes, shown: "LaneCall", deadline: float | None, parts: list[bytes], left: int
) -> None:
    """Go on with a call whose request comes in pieces, of which the lane has `parts`; see `go_on_gathering`."""
    call = _stand_in(protocol, block, shown)
    call.remote_ended = False
    call.go_on_gathering(deadline, parts, left)
    protocol.connection.reader.replaced(shown, call)


def _finish(
    protocol: "Protocol",
    block: bytes,
    others: "list[BegunCall]",
    shown: "LaneCall",
    deadline: float | None,
    message: bytes,
    answer: bytes | HeldCall | None,
    failure: Exception | None,
) -> None:
    """Go on with a call whose request has come in pieces, and whose short way the lane has asked; see `_conclude`."""
    call = _stand_in(protocol, block, shown)
    call.go_on_gathering(deadline, [], -1)
    _leave(protocol.connection, others)
    call.go_on_with(message, _saying(answer, failure))
