"""The short ways of Receive and Acknowledge, for calls whose like was seen before.

Their Python twins are `DirectReceive` and `DirectAcknowledge`, which do all else: what is new, and what is not plain.
State is theirs: calls may go either way, in any order.
"""

import cython
from cython.cimports.cpython.bytes import PyBytes_AS_STRING, PyBytes_FromStringAndSize
from cython.cimports.cpython.dict import PyDict_GetItem
from cython.cimports.cpython.object import PyObject
from cython.cimports.tandemmq.common.grpc_transport.compiled.seconds import seconds_now
from cython.cimports.tandemmq.store.fronts.native.compiled.consumer_codec import CompiledHandles, handles_of

from tandemmq.common.grpc_transport import HELD
from tandemmq.store.broker.send import new_tuple
from tandemmq.store.fronts.acknowledgements_of_turn import FEW_HANDLES
from tandemmq.store.fronts.calls_of_turn import KeptCall

_MOST_ASKED: cython.int = 4096
_LONGEST_HEAD: cython.Py_ssize_t = 1024
_FEW_HANDLES: cython.Py_ssize_t = FEW_HANDLES


@cython.cfunc
def kept_in(kept: dict, asked: object, kept_for: object) -> list:
    """Where calls of this turn are kept that ask for this; `kept_for` has no part in it but for the first of them."""
    found: cython.pointer(PyObject) = PyDict_GetItem(kept, asked)
    return cython.cast(list, found) if found != cython.NULL else kept_for(asked)


@cython.cclass
class CompiledReceiveWay:
    """See the module; `grpc_transport.Direct` is `answer`."""

    def __init__(self, receives: object) -> None:
        """For a `DirectReceive`."""
        self._otherwise = receives
        self._wishes, self._kept, self._kept_for = receives.wishes, receives.kept, receives.kept_for

    def answer(self, message: bytes, call: object) -> object:
        """See `grpc_transport.Direct`."""
        begun: cython.double = seconds_now()
        plain: cython.pointer(PyObject) = PyDict_GetItem(self._wishes, message)
        if plain == cython.NULL:
            return self._otherwise(message, call)
        if begun < cython.cast(object, plain).later or not call.has_room:
            return None
        kept: list = kept_in(self._kept, cython.cast(object, plain), self._kept_for)
        if kept is None:
            return None
        kept.append(new_tuple(KeptCall, (call, message, begun, None)))
        return HELD


@cython.cclass
class CompiledAcknowledgeWay:
    """See the module; `grpc_transport.Direct` is `answer`."""

    def __init__(self, acknowledges: object) -> None:
        """For a `DirectAcknowledge`."""
        self._otherwise, self._asked_by, self._handles = acknowledges, acknowledges.asked, acknowledges.given
        self._kept, self._kept_for, self._asked = acknowledges.kept, acknowledges.kept_for, {}

    def answer(self, message: bytes, call: object) -> object:
        """See `grpc_transport.Direct`."""
        begun: cython.double = seconds_now()
        size: cython.Py_ssize_t = 0
        given: CompiledHandles = handles_of(message, cython.address(size), self._handles)
        if given is None or len(given.handles) > _FEW_HANDLES or size > _LONGEST_HEAD:
            return self._otherwise(message, call)
        head: bytes = PyBytes_FromStringAndSize(PyBytes_AS_STRING(message), size)
        asked: cython.pointer(PyObject) = PyDict_GetItem(self._asked, head)
        if asked == cython.NULL:
            self._remember(head)
            return self._otherwise(message, call)
        kept: list = kept_in(self._kept, cython.cast(object, asked), self._kept_for)
        if kept is None:
            return None
        kept.append(new_tuple(KeptCall, (call, message, begun, given)))
        return HELD

    def _remember(self, head: bytes) -> None:
        """Whose handles those are whose requests begin so."""
        asked: object = self._asked_by(head)
        if asked is not None:
            if len(self._asked) >= _MOST_ASKED:
                self._asked.clear()
            self._asked[head] = asked
