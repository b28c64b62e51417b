"""GatheredRequest: the pieces of a request that comes in several DATA frames; `MessageReader` is its twin."""

import cython
from cython.cimports.cpython.bytes import PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from cython.cimports.libc.string import memcpy
from cython.cimports.tandemmq.common.grpc_transport.compiled.frame_bytes import number

from tandemmq.common.grpc_transport.rpc import messages

_PREFIX: cython.int = messages.PREFIX_SIZE
_OVERHEAD: cython.Py_ssize_t = messages.PART_OVERHEAD


@cython.cclass
class GatheredRequest:
    """Of one call. `left`: bytes that its message lacks; -1: nothing has come of it."""

    def __init__(self) -> None:
        self.left = -1
        self.parts = []

    @cython.cfunc
    @cython.exceptval(check=False)
    def fits(
        self, at: cython.p_const_uchar, size: cython.Py_ssize_t, ended: cython.bint, largest: cython.Py_ssize_t
    ) -> cython.bint:
        """Whether a piece of the body is plain: it leaves the message incomplete, or completes it and ends the request.

        `largest`: bytes that a message may have.
        """
        if self.left >= 0:
            return size == self.left if ended else 0 < size < self.left
        if ended or size < _PREFIX or at[0]:
            return False
        length: cython.Py_ssize_t = number(at + 1)
        return size - _PREFIX < length <= largest

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def add(self, at: cython.p_const_uchar, size: cython.Py_ssize_t) -> cython.Py_ssize_t:
        """Keep a piece that fits and does not end the request; the bytes that this costs."""
        if self.left < 0:
            self.left = number(at + 1)
            at += _PREFIX
            size -= _PREFIX
            if not size:
                return 0
        self.parts.append(PyBytes_FromStringAndSize(cython.cast(cython.p_const_char, at), size))
        self.left -= size
        return size + _OVERHEAD

    @cython.cfunc
    def message(self, at: cython.p_const_uchar, size: cython.Py_ssize_t) -> bytes:
        """The message, whose last piece this is."""
        part: bytes
        length: cython.Py_ssize_t = size
        for part in self.parts:
            length += PyBytes_GET_SIZE(part)
        whole: bytes = PyBytes_FromStringAndSize(cython.NULL, length)
        to: cython.p_uchar = cython.cast(cython.p_uchar, PyBytes_AS_STRING(whole))
        for part in self.parts:
            memcpy(to, PyBytes_AS_STRING(part), PyBytes_GET_SIZE(part))
            to += PyBytes_GET_SIZE(part)
        memcpy(to, at, size)
        return whole
