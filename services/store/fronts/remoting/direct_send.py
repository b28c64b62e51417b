"""DirectFrames: SEND_MESSAGE_V2 from the bytes of its frames to those of its answers, by the compiled core.

What that does not take goes the way of every request: `sending`.
"""

import time
from functools import partial
from typing import Protocol

from tandemmq.common.log_output import get_log
from tandemmq.common.net.remoting.connection import Reads, RemotingConnection
from tandemmq.common.wire.remoting import codec
from tandemmq.common.wire.remoting.codes import RequestCode, ResponseCode
from tandemmq.common.wire.remoting.frames import RemotingFrame, RemotingFrameReader, Serialization, frame_size
from tandemmq.common.wire.remoting.header_scan import HeaderScan, JsonRead
from tandemmq.store.broker.acknowledgement import Acknowledgement
from tandemmq.store.broker.group_transfer import PutStatus
from tandemmq.store.fronts.held_answer import StoringCore
from tandemmq.store.fronts.remoting.call import host_of
from tandemmq.store.fronts.remoting.dispatch import RemotingTimes
from tandemmq.store.fronts.remoting.identity import RemotingIdentity
from tandemmq.store.fronts.remoting.pulling import PlainPulls
from tandemmq.store.fronts.remoting.sending import STATUSES, RemotingSending

log = get_log(__name__)

_NAME, _SUCCESS = RequestCode.SEND_MESSAGE_V2.name, ResponseCode.SUCCESS.name
_JSON_CODE, _BINARY_CODE = b"310", RequestCode.SEND_MESSAGE_V2.to_bytes(2, "big")
"""Where a header is that of a send: after `{"code":`, or at its beginning."""
AT_ONCE = 256
"""Frames of one connection before the turn of others: less than a millisecond."""


_FAULT = "the server failed; its log says more"


class FramesCore(StoringCore, Protocol):
    """The compiled twin: `tandemmq.store.fronts.remoting.compiled.send_frames.CompiledSendFrames`."""

    def answer(self, header: bytes, body: bytes, peer: bytes, binary: bool) -> bytes | None:
        """The frame of the answer, with SUCCESS; empty where none is wanted. None: not taken, nothing has changed."""
        ...

    @property
    def answered(self) -> int:
        """Frames that the last `answer_all` took."""
        ...

    @property
    def position(self) -> int:
        """The place after them."""
        ...

    def answer_all(self, data: bytes, at: int, peer: bytes, most: int) -> bytes:
        """The same with the whole frames that begin at a place, at most so many, up to one that it does not take."""
        ...

    def written(self) -> bytes:
        """The answers of those that it took, where `answer_all` raised at the next one."""
        ...


class DirectFrames:
    """Asked about each frame before its header is read."""

    def __init__(
        self,
        core: FramesCore,
        acknowledgement: Acknowledgement,
        sending: RemotingSending,
        metrics: RemotingTimes,
        pulls: PlainPulls | None = None,
    ) -> None:
        """`sending`: what takes the others. `pulls`: for those that the core answers; None: it answers none."""
        self.core = core
        self.acknowledgement = acknowledgement
        self.sending = sending
        self._metrics = metrics
        self._pulls = pulls

    def reads(self, identity: RemotingIdentity) -> Reads:
        """The compiled twin of `take`: it has the bytes of a connection before the connection."""
        from tandemmq.store.fronts.compiled.call_times import CompiledCallTimes
        from tandemmq.store.fronts.remoting.compiled.frame_reads import CompiledFrameReads
        from tandemmq.store.fronts.remoting.compiled.pull_frames import CompiledPullFrames

        def times(code: RequestCode) -> CompiledCallTimes:
            return CompiledCallTimes(partial(self._metrics.times, code.name, _SUCCESS, protocol="remoting"))

        sends, pulls = times(RequestCode.SEND_MESSAGE_V2), None
        if self._pulls is not None:
            pulled = times(RequestCode.PULL_MESSAGE), times(RequestCode.LITE_PULL_MESSAGE)
            pulls = CompiledPullFrames(self._pulls, *pulled)
        return lambda connection: CompiledFrameReads(connection, self, identity, sends, pulls).data_received

    def json_read(self, scan: HeaderScan) -> JsonRead:
        """The compiled twin of a scan."""
        from tandemmq.store.fronts.remoting.compiled.json_scan import CompiledJsonScan

        return CompiledJsonScan(scan.code, scan.fields).scan

    def take(self, connection: RemotingConnection, data: bytes) -> int:
        """See `Lane`."""
        acknowledgement, core = self.acknowledgement, self.core
        if data[16:19] != _JSON_CODE and data[8:10] != _BINARY_CODE:
            return 0  # no send, whatever it is
        if self.sending.gathers or acknowledgement.refuses:
            return 0
        peer = host_of(connection.peer).packed
        try:
            if acknowledgement.waits:
                return self._take_held(connection, data, peer)
            begun = time.perf_counter()
            try:
                answers = core.answer_all(data, 0, peer, AT_ONCE)
            except Exception as error:  # noqa: BLE001 - whatever it is, those before it are stored
                return self.failed(connection, data, begun, error)
            if core.answered:
                self._done(connection, answers, begun, core.answered)
            return core.position
        except Exception as error:  # noqa: BLE001 - nobody tries again: something may have changed
            _failed(connection, error)
            return len(data)

    def failed(self, connection: RemotingConnection, data: bytes, begun: float, error: Exception) -> int:
        """Answer those that were taken before the core failed, and the one at which it did: the place after it."""
        if self.core.answered:
            self._done(connection, self.core.written(), begun, self.core.answered)
        return self._refused(connection, data, self.core.position, begun, error)

    def _take_held(self, connection: RemotingConnection, data: bytes, peer: bytes) -> int:
        """The same where sends wait for disk or replicas: one by one, as there is room for each."""
        core, at = self.core, 0
        for _ in range(AT_ONCE):
            size, begun = frame_size(data, at), time.perf_counter()
            if not connection.has_room(size):
                break
            try:
                answer = core.answer_all(data, at, peer, 1)
            except Exception as error:  # noqa: BLE001 - whatever it is, those before it are stored
                return self._refused(connection, data, at, begun, error)
            if not core.answered:
                break
            at = core.position
            self._hold(connection, size, answer, begun)
        return at

    def __call__(self, connection: RemotingConnection, frame: RemotingFrame) -> bool:
        """Whether it was taken. Never while messages wait for the end of the turn: it would overtake them."""
        acknowledgement, size = self.acknowledgement, len(frame.body)
        if frame.header[8:11] != _JSON_CODE and frame.header[:2] != _BINARY_CODE:
            return False
        waits = acknowledgement.waits
        if self.sending.gathers or acknowledgement.refuses or (waits and not connection.has_room(size)):
            return False
        begun, binary = time.perf_counter(), frame.serialization is Serialization.ROCKETMQ
        try:
            answer = self.core.answer(frame.header, frame.body, host_of(connection.peer).packed, binary)
        except Exception as error:  # noqa: BLE001 - nobody tries again: something may have changed
            self._refuse(connection, frame, begun, error)
            return True
        if answer is None:
            return False
        if waits:
            self._hold(connection, size, answer, begun)
        else:
            self._done(connection, answer, begun, 1)
        return True

    def _refused(self, connection: RemotingConnection, data: bytes, at: int, begun: float, error: Exception) -> int:
        """Answer the frame at a place, of which nobody knows what became; gives the place after it."""
        end = at + frame_size(data, at)
        [frame] = RemotingFrameReader().receive(data[at:end])
        self._refuse(connection, frame, begun, error)
        return end

    def _refuse(self, connection: RemotingConnection, frame: RemotingFrame, begun: float, error: Exception) -> None:
        log.failure("call failed", error, method=_NAME)
        request = codec.decode(frame)
        connection.respond(request, request.answer(ResponseCode.SYSTEM_ERROR, remark=_FAULT))
        self._metrics.called(_NAME, ResponseCode.SYSTEM_ERROR.name, time.perf_counter() - begun, protocol="remoting")

    def _done(self, connection: RemotingConnection, answers: bytes, begun: float, calls: int) -> None:
        if answers:
            connection.send_bytes(answers)
        seconds = (time.perf_counter() - begun) / calls
        self._metrics.called(_NAME, _SUCCESS, seconds, protocol="remoting", calls=calls)

    def _hold(self, connection: RemotingConnection, size: int, answer: bytes, begun: float) -> None:
        """Answer the message that was stored last when it is as safe as it is to be."""
        connection.begin_request(size)
        held = HeldFrame(connection, size, answer, begun, self._metrics)
        self.acknowledgement.when_safe(self.core.end_offset, held, wait=self.core.waits)


def _failed(connection: RemotingConnection, error: Exception) -> None:
    log.failure("call failed", error, method=_NAME)
    connection.close(_FAULT)


class HeldFrame:
    """A send that waits for disk or replicas; called with its status."""

    __slots__ = ("_answer", "_begun", "_connection", "_metrics", "_size")

    def __init__(
        self, connection: RemotingConnection, size: int, answer: bytes, begun: float, metrics: RemotingTimes
    ) -> None:
        """`answer`: with SUCCESS, or nothing. `size`: as `begin_request` was told."""
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
