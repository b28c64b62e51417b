"""The asyncio binding: sockets, tasks, timers, and the objects that handlers and callers see.

server.py       Server: `grpc.aio.Server` on this transport; start, drain, stop
listen.py       listening sockets for gRPC addresses
first_byte.py   FirstByte: plain text and TLS on one listening socket
protocol.py     Protocol: one socket; back-pressure in both directions, flushes
flushing.py     Flushing: its writing half, which a client's has too
identity.py     who the peer is
handlers.py     Methods: path -> handler; interceptors
checks.py       what handlers say, checked
holding.py      Holding: what a connection holds, told to the budget; peers that are slow
lanes.py        Lanes: the compiled short cut of connections, where it is used
turns.py        Turns: how long a turn of the event loop lasts
load.py         Load: the same for metrics
context.py      CallContext: the stream, the call and `ServicerContext` in one object
call.py         calls with one request; running handlers
stream_call.py  calls with a stream of requests; calls behind interceptors
answering.py    calls with streams both ways and no task
refused.py      requests that no handler sees
first_step.py   a coroutine that begins without a task

channel.py          Channel: `grpc.aio.Channel` on this transport; connects, again too
duplex.py           bidirectional calls without tasks
dialing.py          connected sockets for gRPC addresses
client_protocol.py  ClientProtocol: one socket of a channel
client_methods.py   what a stub calls
client_call.py      ClientCall: the stream and `grpc.aio.Call` in one object
client_calls.py     the four kinds of calls
"""
