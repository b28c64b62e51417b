"""LaneHeads: what the header blocks of a lane's calls say: the last one is remembered, since most calls repeat it."""

import cython
from cython.cimports.cpython.bytes import PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from cython.cimports.libc.string import memcmp
from cython.cimports.tandemmq.common.grpc_transport.compiled.head_scan import HeadScan


@cython.cclass
class LaneHeads:
    """Of one lane."""

    def __init__(self, scan: HeadScan, view: object) -> None:
        """`view` gives the CallHead of a block."""
        self._scan, self._view = scan, view
        self._block = b""

    @cython.cfunc
    def method(self, block: cython.p_const_uchar, size: cython.Py_ssize_t) -> object:
        """The method of the call that a block begins; None: it is not plain."""
        if self._is_last(block, size):
            return self._method
        found: object = self._scan.find(block, size)
        if found is None:
            return None
        self._block = PyBytes_FromStringAndSize(cython.cast(cython.p_const_char, block), size)
        self._method = found
        return found

    @cython.cfunc
    def kept(self, block: cython.p_const_uchar, size: cython.Py_ssize_t) -> bytes:
        """A block as an object: it goes with its read otherwise."""
        if self._is_last(block, size):
            return self._block
        return PyBytes_FromStringAndSize(cython.cast(cython.p_const_char, block), size)

    @cython.cfunc
    def metadata(self, head: bytes) -> object:
        """What the caller has sent along. Raises CallFailure."""
        if self._viewed is not head:
            self._metadata = self._view(head).metadata
            self._viewed = head
        return self._metadata

    @cython.cfunc
    def timeout(self, head: bytes) -> object:
        """Seconds that the call has; None: as many as it takes. It is there where the metadata cannot be read, too."""
        if self._timed is not head:
            self._timeout = self._view(head).timeout
            self._timed = head
        return self._timeout

    @cython.cfunc
    @cython.exceptval(check=False)
    def _is_last(self, block: cython.p_const_uchar, size: cython.Py_ssize_t) -> cython.bint:
        return PyBytes_GET_SIZE(self._block) == size and not memcmp(PyBytes_AS_STRING(self._block), block, size)
