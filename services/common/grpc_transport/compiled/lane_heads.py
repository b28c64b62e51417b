"""LaneHeads: what the header blocks of a lane's calls say. The last two are remembered, since most calls repeat one.

They are two because a consumer calls two methods in turn: it receives, and acknowledges.
"""

import cython
from cython.cimports.cpython.bytes import PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from cython.cimports.libc.string import memcmp
from cython.cimports.tandemmq.common.grpc_transport.compiled.head_scan import HeadScan


@cython.cclass
class KnownHead:
    """A block that is remembered, and what was asked of it."""

    @cython.cfunc
    @cython.exceptval(check=False)
    def _is(self, block: cython.p_const_uchar, size: cython.Py_ssize_t) -> cython.bint:
        return PyBytes_GET_SIZE(self._block) == size and not memcmp(PyBytes_AS_STRING(self._block), block, size)

    @cython.cfunc
    def metadata(self, view: object) -> object:
        """See LaneHeads."""
        if not self._has_metadata:
            self._metadata = view(self._block).metadata
            self._has_metadata = True
        return self._metadata

    @cython.cfunc
    def timeout(self, view: object) -> object:
        """See LaneHeads."""
        if not self._has_timeout:
            self._timeout = view(self._block).timeout
            self._has_timeout = True
        return self._timeout


@cython.cfunc
def remembered(block: bytes, method: object) -> KnownHead:
    """A block of which nothing else was asked yet."""
    head: KnownHead = KnownHead()
    head._block, head._method = block, method
    return head


@cython.cclass
class LaneHeads:
    """Of one lane."""

    def __init__(self, scan: HeadScan, view: object) -> None:
        """`view` gives the CallHead of a block."""
        self._scan, self._view = scan, view

    @cython.cfunc
    def method(self, block: cython.p_const_uchar, size: cython.Py_ssize_t) -> object:
        """The method of the call that a block begins; None: it is not plain."""
        known: KnownHead = self._known(block, size)
        if known is not None:
            return known._method
        found: object = self._scan.find(block, size)
        if found is None:
            return None
        self._before = self._last
        self._last = remembered(PyBytes_FromStringAndSize(cython.cast(cython.p_const_char, block), size), found)
        return found

    @cython.cfunc
    def kept(self, block: cython.p_const_uchar, size: cython.Py_ssize_t) -> bytes:
        """A block as an object: it goes with its read otherwise."""
        known: KnownHead = self._known(block, size)
        if known is not None:
            return known._block
        return PyBytes_FromStringAndSize(cython.cast(cython.p_const_char, block), size)

    @cython.cfunc
    def metadata(self, head: bytes) -> object:
        """What the caller has sent along. Raises CallFailure."""
        return self._known_as(head).metadata(self._view)

    @cython.cfunc
    def timeout(self, head: bytes) -> object:
        """Seconds that the call has; None: as many as it takes. It is there where the metadata cannot be read, too."""
        return self._known_as(head).timeout(self._view)

    @cython.cfunc
    def _known(self, block: cython.p_const_uchar, size: cython.Py_ssize_t) -> KnownHead:
        """What is remembered of a block, which is the last one then; None: nothing."""
        last: KnownHead = self._last
        if last is None or last._is(block, size):
            return last
        before: KnownHead = self._before
        if before is None or not before._is(block, size):
            return None
        self._last, self._before = before, last
        return before

    @cython.cfunc
    def _known_as(self, head: bytes) -> KnownHead:
        """The same of an object that `kept` gave; where nothing is remembered, what is asked is forgotten again."""
        if self._last is not None and self._last._block is head:
            return self._last
        if self._before is not None and self._before._block is head:
            return self._before
        return remembered(head, None)
