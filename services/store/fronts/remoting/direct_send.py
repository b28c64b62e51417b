"""DirectFrames: a SEND_MESSAGE_V2 from the bytes of its frame to those of its answer, by the compiled core.

What that does not take goes the way of every request: `sending`.
"""

import time
from typing import Protocol

from tandemmq.common.log_output import get_log
from tandemmq.common.net.remoting.connection import RemotingConnection
from tandemmq.common.wire.remoting import codec
from tandemmq.common.wire.remoting.codes import RequestCode, ResponseCode
from tandemmq.common.wire.remoting.frames import RemotingFrame, RemotingFrameReader, Serialization
from tandemmq.store.broker.acknowledgement import Acknowledgement
from tandemmq.store.broker.group_transfer import PutStatus
from tandemmq.store.fronts.remoting.call import host_of
from tandemmq.store.fronts.remoting.dispatch import RemotingTimes
from tandemmq.store.fronts.remoting.sending import STATUSES, RemotingSending

log = get_log(__name__)

_NAME = RequestCode.SEND_MESSAGE_V2.name


class FramesCore(Protocol):
    """The compiled twin: `tandemmq.store.fronts.remoting.compiled.send_frames.CompiledSendFrames`."""

    @property
    def end_offset(self) -> int:
        """Log offset after the message that was stored last."""
        ...

    @property
    def waits(self) -> bool:
        """Whether that message waits for disk and replicas, where sends do."""
        ...

    @property
    def taken(self) -> int:
        """Frames that it took so far."""
        ...

    def answer(self, header: bytes, body: bytes, peer: bytes, binary: bool) -> bytes | None:
        """The frame of the answer, with SUCCESS; empty where none is wanted. None: not taken, nothing has changed."""
        ...


class DirectFrames:
    """Asked about each frame before its header is read."""

    def __init__(
        self, core: FramesCore, acknowledgement: Acknowledgement, sending: RemotingSending, metrics: RemotingTimes
    ) -> None:
        """`sending`: what takes the others."""
        self._core = core
        self._acknowledgement = acknowledgement
        self._sending = sending
        self._metrics = metrics

    def __call__(self, connection: RemotingConnection, frame: RemotingFrame) -> bool:
        """Whether it was taken. Never while messages wait for the end of the turn: it would overtake them."""
        acknowledgement, size = self._acknowledgement, len(frame.body)
        if self._sending.gathers or acknowledgement.refuses:
            return False
        waits = acknowledgement.waits
        if waits and not connection.begin_request(size):
            return False
        begun = time.perf_counter()
        core, binary = self._core, frame.serialization is Serialization.ROCKETMQ
        try:
            answer = core.answer(frame.header, frame.body, host_of(connection.peer).packed, binary)
        except Exception as error:  # noqa: BLE001 - nobody tries again: something may have changed
            log.failure("call failed", error, method=_NAME)
            if waits:
                connection.end_request(size)
            connection.close("the server failed; its log says more")
            return True
        if answer is None:
            if waits:
                connection.end_request(size)
            return False
        if waits:
            held = HeldFrame(connection, size, answer, begun, self._metrics)
            acknowledgement.when_safe(core.end_offset, held, wait=core.waits)
            return True
        if answer:
            connection.send_bytes(answer)
        self._metrics.called(_NAME, ResponseCode.SUCCESS.name, time.perf_counter() - begun, protocol="remoting")
        return True


class HeldFrame:
    """A send that waits for disk or replicas; called with its status."""

    __slots__ = ("_answer", "_begun", "_connection", "_metrics", "_size")

    def __init__(
        self, connection: RemotingConnection, size: int, answer: bytes, begun: float, metrics: RemotingTimes
    ) -> None:
        """`answer`: with SUCCESS, or nothing. `size`: of the body, as `begin_request` was told."""
        self._connection = connection
        self._size = size
        self._answer = answer
        self._begun = begun
        self._metrics = metrics

    def __call__(self, status: PutStatus) -> None:
        """It is as safe as it is to be, or will not be."""
        connection, answer, code = self._connection, self._answer, STATUSES[status]
        connection.end_request(self._size)
        if answer:
            connection.send_bytes(answer if status is PutStatus.PUT_OK else _with_status(answer, status))
        self._metrics.called(_NAME, code.name, time.perf_counter() - self._begun, protocol="remoting")


def _with_status(answer: bytes, status: PutStatus) -> bytes:
    """The answer of a message that is stored, and less safe than it is to be."""
    (frame,) = RemotingFrameReader().receive(answer)
    command = codec.decode(frame)
    command.code, command.remark = STATUSES[status], status.name
    return codec.encode(command)
