"""CompiledFrameReads: the reads of one classic connection whose frames the core takes, without an object for each.

Its Python twins are `RemotingConnection.read` and `DirectFrames.take`. It takes whole frames from the beginning of a
read while nothing waits before them, and leaves the rest to the connection: half frames, other requests, whatever the
core does not know, and all of it where callers have to be recognized or sends wait for disk or replicas.
"""

import cython
from cython.cimports.cpython.bytes import PyBytes_AS_STRING, PyBytes_GET_SIZE
from cython.cimports.libc.string import memcmp
from cython.cimports.tandemmq.common.grpc_transport.compiled.seconds import seconds_now
from cython.cimports.tandemmq.store.fronts.compiled.call_times import CompiledCallTimes
from cython.cimports.tandemmq.store.fronts.remoting.compiled.pull_frames import CompiledPullFrames
from cython.cimports.tandemmq.store.fronts.remoting.compiled.send_frames import CompiledSendFrames

from tandemmq.store.fronts.remoting.call import host_of
from tandemmq.store.fronts.remoting.direct_send import AT_ONCE

_AT_ONCE: cython.int = AT_ONCE
_GLANCE: cython.int = 19
"""Bytes up to the code's end, in JSON; it comes earlier in a binary header."""


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def begins_with_a_send(data: bytes) -> cython.int:
    """Whether the first frame is SEND_MESSAGE_V2, as far as a glance can tell."""
    begin: cython.p_const_char = PyBytes_AS_STRING(data)
    if PyBytes_GET_SIZE(data) < _GLANCE:
        return 0
    return memcmp(begin + 16, b"310", 3) == 0 or memcmp(begin + 8, b"\x01\x36", 2) == 0


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def begins_with_a_pull(data: bytes) -> cython.int:
    """Whether the first frame is a pull with a header in JSON, as far as a glance can tell."""
    begin: cython.p_const_char = PyBytes_AS_STRING(data)
    if PyBytes_GET_SIZE(data) < _GLANCE + 1:
        return 0
    return memcmp(begin + 16, b"11,", 3) == 0 or memcmp(begin + 16, b"361,", 4) == 0


@cython.cclass
class CompiledFrameReads:
    """See the module."""

    def __init__(
        self,
        connection: object,
        direct: object,
        identity: object,
        times: CompiledCallTimes,
        pulls: CompiledPullFrames | None = None,
    ) -> None:
        """`direct`: the DirectFrames whose core is asked. `times`: of its good sends. `pulls`: what takes pulls."""
        self._connection = connection
        self._direct = direct
        self._sending = direct.sending
        self._acknowledgement = direct.acknowledgement
        self._identity = identity
        self._core = direct.core
        self._times = times
        self._pulls = pulls

    def data_received(self, data: bytes) -> None:
        """Bytes have come: what `RemotingConnection.read` does, without Python where the core takes all of it."""
        connection: object = self._connection
        position: cython.Py_ssize_t = 0
        if not self._between or self._identity.recognizes:
            connection.read(data)
        else:
            if self._pulls is not None and begins_with_a_pull(data):
                position = self._pull(data)
            elif not self._acknowledgement.waits:
                position = self._take(data)
            if position == PyBytes_GET_SIZE(data):
                return
            if self._acknowledgement.waits or position:
                connection.read(data[position:] if position else data)
            else:
                connection.go_on(data)
        self._between = connection.between_frames

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def _pull(self, data: bytes) -> cython.Py_ssize_t:
        """Answer the pulls that lie whole at the beginning: the place after them."""
        connection: object = self._connection
        connection.heard = True
        transport: object = connection._transport
        if transport is None or connection._stalled_since is not None or transport.is_closing():
            return 0
        return self._pulls.answer_all(connection, transport, data)

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def _take(self, data: bytes) -> cython.Py_ssize_t:
        """Answer what lies whole at the beginning: the place after it."""
        connection: object = self._connection
        connection.heard = True
        if not begins_with_a_send(data):
            return 0
        transport: object = connection._transport
        if transport is None or connection._stalled_since is not None or transport.is_closing():
            return 0
        if self._sending.gathers or self._acknowledgement.refuses:
            return 0
        if self._peer is None:
            self._peer = host_of(connection.peer).packed
        begun: cython.double = seconds_now()
        core: CompiledSendFrames = self._core
        try:
            answers: bytes = core.answer_all(data, 0, self._peer, _AT_ONCE)
        except Exception as error:  # noqa: BLE001 - whatever it is, those before it are stored
            return self._direct.failed(connection, data, begun, error)
        if core.answered:
            self._times.count((seconds_now() - begun) / core.answered, core.answered)
            if PyBytes_GET_SIZE(answers):
                self._write(transport, answers)
        return core.position

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def _write(self, transport: object, answers: bytes) -> cython.int:
        """What `RemotingConnection.send_bytes` does, at once where nothing waits before them."""
        if self._connection._output:
            self._connection.send_bytes(answers)
        else:
            transport.write(answers)
        return 1
