"""CompiledMessage: what a record has of a message from a client, given piece by piece; properties as they lie there.

A front calls `begin`, then `add` for each property in the order of the wire. Where one of these gives 0, the message is
not plain: it has a property that means something to the broker when it is sent, or that is none.
"""

import cython
from cython.cimports.cpython.bytes import PyBytes_AS_STRING, PyBytes_GET_SIZE
from cython.cimports.cpython.unicode import PyUnicode_DecodeUTF8
from cython.cimports.libc.stdint import uint64_t
from cython.cimports.libc.stdlib import free, malloc
from cython.cimports.libc.string import memcmp, memcpy
from cython.cimports.tandemmq.store.log.compiled.appender import Plain

from tandemmq.store.broker.rules import SPECIAL
from tandemmq.store.format.properties import UNIQ_KEY, WAIT
from tandemmq.store.format.record_encoder import MAX_PROPERTIES

_ANY_QUEUE: cython.int = -1
_UNIQUE: bytes = UNIQ_KEY.encode()
_WAIT: bytes = WAIT.encode()
_TRUE: bytes = b"true"
_FALSE: bytes = b"false"
_SPECIAL: list[bytes] = sorted(name.encode() for name in SPECIAL)
_SPECIAL_MARKS: uint64_t = sum({1 << (name[0] + 7 * len(name) & 63) for name in _SPECIAL})
"""A bit for first letter and length of each: few other names need a comparison."""
_ROOM: cython.int = MAX_PROPERTIES + 512


@cython.cfunc
@cython.inline
@cython.exceptval(-1, check=False)
def is_text(text: cython.p_const_uchar, size: cython.Py_ssize_t) -> cython.int:
    """Whether it is UTF-8 without the characters 01 and 02."""
    seen: cython.int = tandem_glance_at_text(text, size)
    if seen & 1:
        return 0
    if seen:
        try:
            PyUnicode_DecodeUTF8(cython.cast(cython.p_const_char, text), size, cython.NULL)
        except UnicodeDecodeError:
            return 0
    return 1


@cython.cfunc
@cython.inline
@cython.exceptval(-1, check=False)
def is_special(name: cython.p_const_uchar, size: cython.Py_ssize_t) -> cython.int:
    """Whether a property of this name means something to the broker."""
    one: bytes
    if not _SPECIAL_MARKS >> (name[0] + 7 * size & 63) & 1:
        return 0
    for one in _SPECIAL:
        if PyBytes_GET_SIZE(one) == size and memcmp(PyBytes_AS_STRING(one), name, size) == 0:
            return 1
    return 0


@cython.cclass
class CompiledMessage:
    """See the module."""

    def __cinit__(self) -> None:
        """Take the room for properties."""
        self.room = cython.cast(cython.p_uchar, malloc(_ROOM))
        if self.room == cython.NULL:
            raise MemoryError

    def __dealloc__(self) -> None:
        """Give it back."""
        free(self.room)

    def __init__(self, most_properties: cython.longlong) -> None:
        """`most_properties`: bytes of all of them."""
        self._most_properties = most_properties

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def begin(self) -> cython.int:
        """A new message, of which nothing is known."""
        plain: cython.pointer(Plain) = cython.address(self.plain)
        plain.body = plain.born_host = cython.NULL
        plain.body_size = plain.properties_size = plain.born_host_size = 0
        plain.born_timestamp = 0
        plain.queue_id = _ANY_QUEUE
        plain.flag = plain.sys_flag = plain.reconsume_times = 0
        plain.properties = self.room
        self.unique = cython.NULL
        self.unique_size = 0
        self.waits = True
        self.repeatable = False
        return 1

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def add(
        self,
        name: cython.p_const_uchar,
        name_size: cython.Py_ssize_t,
        value: cython.p_const_uchar,
        size: cython.Py_ssize_t,
    ) -> cython.int:
        """A property. 0: it is not plain, or there is no room for it. WAIT is obeyed and not stored."""
        plain: cython.pointer(Plain) = cython.address(self.plain)
        at: cython.Py_ssize_t = plain.properties_size
        if name_size == 0 or size == 0 or name_size > _ROOM or size > _ROOM:
            return 0
        if name_size == 4 and memcmp(name, PyBytes_AS_STRING(_WAIT), 4) == 0:
            return self._wait(value, size)
        if at + name_size + size + 2 > self._most_properties or is_special(name, name_size):
            return 0
        if not is_text(name, name_size) or not is_text(value, size):
            return 0
        to: cython.p_uchar = self.room + at
        memcpy(to, name, name_size)
        to[name_size] = 1
        to += name_size + 1
        memcpy(to, value, size)
        to[size] = 2
        plain.properties_size = at + name_size + size + 2
        if name_size == PyBytes_GET_SIZE(_UNIQUE) and memcmp(name, PyBytes_AS_STRING(_UNIQUE), name_size) == 0:
            self.unique = to
            self.unique_size = size
        return 1

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def _wait(self, value: cython.p_const_uchar, size: cython.Py_ssize_t) -> cython.int:
        """Take WAIT, in the form in which clients write it; 0 in any other."""
        if size == 4 and memcmp(value, PyBytes_AS_STRING(_TRUE), 4) == 0:
            return 1
        if size == 5 and memcmp(value, PyBytes_AS_STRING(_FALSE), 5) == 0:
            self.waits = False
            return 1
        return 0

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def add_own(self, name: bytes, value: bytes) -> cython.int:
        """As `add`, for a property of ours."""
        return self.add(
            cython.cast(cython.p_const_uchar, PyBytes_AS_STRING(name)), PyBytes_GET_SIZE(name),
            cython.cast(cython.p_const_uchar, PyBytes_AS_STRING(value)), PyBytes_GET_SIZE(value),
        )  # fmt: skip
