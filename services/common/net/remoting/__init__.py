"""Connections of RocketMQ's remoting protocol on asyncio: a server, a client, and what both ends do with a connection.

One noun per file::

    connection.py   Connection: frames in, frames out by one writer; asks its peer and answers it
    asking.py       Asking: the requests of ours that a peer has not answered yet
    handlers.py     Handlers: a table code -> handler; answers what nobody handles, and what raises
    server.py       RemotingServer: ports, plain and TLS by the first byte; idle, slow and greedy peers are closed
    client.py       RemotingClient: one kept connection to one address, dialled when it is needed
    limits.py       Limits, and Told: what peers were made to give up
    errors.py       why a peer gives no answer

A server is `RemotingServer(handlers, limits)`; `add_port`, `start`, `stop`. A handler is a function of a connection and
a command; see `handlers.Handler`. `Connection.ask` and `Connection.tell` are for what a server begins itself.
"""
