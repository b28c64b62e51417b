"""RefusedCall: a request that no handler sees, answered as soon as it may be."""

from tandemmq.common.grpc_transport.http2.connection import Connection
from tandemmq.common.grpc_transport.http2.stream import Stream
from tandemmq.common.grpc_transport.rpc import answers
from tandemmq.common.grpc_transport.rpc.call_head import CallHead
from tandemmq.common.grpc_transport.rpc.status import Refusal, Status

_READ_LIMIT = 64 << 10
"""Body bytes of what is no gRPC call that are read (and dropped) before it is answered."""
_NO_GRPC = "This is a gRPC server: it takes POST requests with content-type application/grpc.\n"


class RefusedCall(Stream):
    """Ends with a status (a gRPC call) or with an HTTP error and a line of text (anything else)."""

    _size = 0

    def __init__(self, connection: Connection, stream_id: int, head: CallHead, refusal: Refusal | None) -> None:
        """`refusal`: the status of a gRPC call; None: `head.http_status` says what is wrong."""
        super().__init__(connection, stream_id)
        self._head = head
        self._refusal = refusal

    def opened(self) -> None:
        """See Stream. A gRPC client need not send its request to hear that it is refused."""
        if self._refusal is not None:
            self.ended()

    def data(self, buffer: bytes, start: int, stop: int, ended: bool) -> None:
        """See Stream."""
        self._size += stop - start
        if ended or self._size > _READ_LIMIT:
            self.ended()

    def ended(self) -> None:
        """See Stream."""
        sender = self.connection.sender
        if self.closed or self.pending is not None or self.pending_trailers is not None:
            return
        if self._refusal is None:
            head, body = answers.plain(self._head.http_status, _NO_GRPC)
            if self._head.wants_no_body:
                sender.trailers(self, head)
            else:
                sender.end(self, head, body)
            return
        block = answers.trailers(self._refusal.status, self._refusal.details)
        if self._refusal.status is Status.UNIMPLEMENTED:
            block = answers.unsupported_encoding() + block
        sender.trailers(self, answers.HEAD + block)

    def reset(self, code: int) -> None:
        """See Stream; nobody waits."""
