"""HTTP/2 as gRPC needs it (RFC 9113, RFC 7541), both ends: bytes in, calls and answers out. No sockets, tasks, clock.

Map, from the bytes up::

    frames.py      the layout of frames, and the bytes of those that we send
    headers.py     header blocks: HPACK without a dynamic table, by a cache or a scan
    huffman.py     strings of header blocks in Huffman code
    request.py     RequestHead: a header list that is a well-formed request
    stream.py      Stream: one exchange; what the layer above subclasses
    sender.py      Sender: what goes out, within the peer's windows
    floods.py      Floods: what a peer may ask for without paying
    budget.py      Budget, Account: what all connections hold together, and who may hold more
    frame_reader.py  FrameReader: cuts frames out of bytes, joins header blocks
    endpoint.py    Endpoint: what both ends share: streams, windows, control frames, time-outs, drain, failure
    connection.py  Connection: the server's end
    response.py    ResponseHead: a header list that is a well-formed answer, or trailers
    client.py      ClientConnection, Exchange: the client's end
    limits.py      Limits: every number
    errors.py      ErrorCode, ConnectionFault, StreamFault

It knows nothing of gRPC: requests and answers are heads, bodies and trailers.
"""
