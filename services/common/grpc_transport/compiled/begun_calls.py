"""BegunCalls: calls whose header blocks were read and whose requests have not ended, in their order."""

import cython
from cython.cimports.cpython.bytes import PyBytes_FromStringAndSize

from tandemmq.common.grpc_transport.http2 import frames

_FRAME: cython.int = frames.HEADER_SIZE


@cython.cclass
class BegunCalls:
    """One for all lanes of a server, of which one works at a time; it counts the calls that they have taken.

    Each lane uses it within one call of `take`: header blocks lie in the bytes that were read.
    """

    @cython.cfunc
    def put_back(self) -> bytes:
        """The frames of all of them, to be read again: they begin later. Empty, and they stay, where that cannot be."""
        parts: list = []
        i: cython.int
        for i in range(self.first, self.end):
            if self.calls[i].increment:
                return b""  # what has been counted is not read again
            frame: cython.p_const_uchar = self.calls[i].block - _FRAME
            size: cython.Py_ssize_t = self.calls[i].block_size + _FRAME
            parts.append(PyBytes_FromStringAndSize(cython.cast(cython.p_const_char, frame), size))
        self.first = self.end
        return b"".join(parts)

    @cython.cfunc
    def leave(self) -> list:
        """Header block, stream and increment of each; they are remembered no more."""
        found: list = []
        call: cython.pointer(BegunCall)
        while self.first < self.end:
            call = cython.address(self.calls[self.first])
            block: bytes = PyBytes_FromStringAndSize(cython.cast(cython.p_const_char, call.block), call.block_size)
            found.append((block, call.stream, call.increment))
            self.first += 1
        return found
