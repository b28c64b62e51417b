"""gRPC over HTTP/2 (grpc/doc/PROTOCOL-HTTP2.md) as bytes and values: no sockets, no tasks, no HTTP/2 frames.

One call on the wire::

    HEADERS  :method POST, :path /package.Service/Method, content-type application/grpc, te trailers,
             grpc-timeout, grpc-encoding, grpc-accept-encoding, metadata
    DATA     ( compressed 1 byte | length 4 bytes, big-endian | message )*
    HEADERS  :status 200, content-type application/grpc, grpc-encoding, metadata
    DATA     ( compressed | length | message )*
    HEADERS  grpc-status, grpc-message (percent-encoded), metadata                                       the trailers

Map::

    call_head.py    CallHead: what a request's header list says to gRPC, or why it is none
    metadata.py     metadata <-> header fields; `-bin` keys
    timeout.py      grpc-timeout
    messages.py     MessageReader: messages out of DATA; their prefix
    compression.py  gzip and deflate, within limits
    answers.py      header blocks of answers and trailers, for a server
    requests.py     header blocks of requests, for a client
    outcome.py      AnswerHead, Outcome: what an answer's head and end say, for a client
    status.py       status codes, and the failures of a call that this layer finds
"""
