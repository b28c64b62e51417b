"""gRPC for asyncio in plain Python, both ends: HTTP/2 of its own instead of grpcio's core, at a tenth of its cost.

The server takes what generated code and `grpc.aio.server` take (servicers, generic handlers, interceptors), hands
handlers a `grpc.aio.ServicerContext`, and hosts grpcio's health and reflection services unchanged. The client is a
`grpc.aio.Channel` for generated stubs. `duplex` gives its bidirectional calls without tasks, `answering` those of the
server. It knows nothing of the project around it, and could be a package of its own. Either end talks to grpcio's, or
anybody's.

Three layers, each usable and tested without the one above it::

    aio/    sockets, tasks, timers; Server, Protocol, Call; Channel, ClientProtocol, ClientCall   asyncio, ssl, grpc's
    rpc/    gRPC: messages, metadata, timeouts, statuses as bytes and values                      no I/O
    http2/  HTTP/2: frames, HPACK, streams, windows, limits                           no I/O; the `hpack` library

and `compiled/`, a short cut through all three for plain calls, where it is built.

Why it is fast: a header block that was seen before is found by its bytes (no HPACK table: we announce size 0); a call
whose handler need not wait runs without a task, inside the read that brought it, and one that has a short way
(`Direct`) without a coroutine, also where it waits; all answers of a read leave in one write; stream, call and context
are one object; a message is copied once on its way in.

How it differs from grpc.aio: see docs/grpc-transport.md.
"""

from tandemmq.common.grpc_transport.aio.answering import (
    Answering,
    answer_at_once,
    answering,
    append_field,
    connection_of,
    dialled,
    encoded_field,
    room_for,
    write_all,
)
from tandemmq.common.grpc_transport.aio.channel import Channel, channel
from tandemmq.common.grpc_transport.aio.duplex import Duplex, duplex
from tandemmq.common.grpc_transport.aio.handlers import HELD, Direct, DirectCall, HeldCall
from tandemmq.common.grpc_transport.aio.load import Load, Told
from tandemmq.common.grpc_transport.aio.server import Server, server
from tandemmq.common.grpc_transport.http2.limits import Limits
from tandemmq.common.grpc_transport.rpc.messages import framed
from tandemmq.common.grpc_transport.rpc.status import CallFailure

__all__ = [
    "HELD",
    "Answering",
    "CallFailure",
    "Channel",
    "Direct",
    "DirectCall",
    "Duplex",
    "HeldCall",
    "Limits",
    "Load",
    "Server",
    "Told",
    "answer_at_once",
    "answering",
    "append_field",
    "channel",
    "connection_of",
    "dialled",
    "duplex",
    "encoded_field",
    "framed",
    "room_for",
    "server",
    "write_all",
]
