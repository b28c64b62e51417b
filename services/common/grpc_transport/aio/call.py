"""Calls with one request: `UnaryRequestCall`; the streams of requests are in stream_call.py.

The handler may be a coroutine function, an async generator, or a plain function (which must not block): what it gives
back decides. It runs when the request is complete, in the same turn of the event loop, and if it need not wait its
answer is in the same write as those of its neighbours.
"""

from collections.abc import AsyncIterator, Iterator
from typing import Any

from tandemmq.common.grpc_transport.aio.context import CallContext, log
from tandemmq.common.grpc_transport.aio.first_step import Suspended, first_step
from tandemmq.common.grpc_transport.rpc.messages import PART_OVERHEAD, MessageReader
from tandemmq.common.grpc_transport.rpc.status import CallFailure, Status


class Call(CallContext):
    """What calls of all kinds share: running a handler to its end, and collecting messages."""

    reader: MessageReader | None = None
    """Collects messages that do not come in one piece."""
    _counted = 0
    """Bytes of this call in `connection.buffered`."""

    def run(self, request: Any, size: int) -> None:
        """Call the handler with a request of `size` bytes; whatever comes of it ends the call."""
        method = self.method
        try:
            result = first_step(self.protocol.loop, method.behavior, request, self)
            if type(result) is Suspended:
                self._wait(size)
                self.task = self.protocol.server.begin(self.conclude(result), result.context)
                self.stand_in = result.stand_in
            elif method.response_streaming:
                self._wait(size)
                self.task = self.protocol.server.begin(self.conclude(result))
            else:
                self.finish(result)
        except (KeyboardInterrupt, SystemExit):
            raise
        except BaseException as error:  # noqa: BLE001 - cancellation included: every call gets a status
            self.fail(error)

    def _wait(self, size: int) -> None:
        """The handler must wait: its deadline is watched, and its request counts as long as it does."""
        self.start_timer()
        self.untidy = True
        self._counted += size
        self.connection.buffered += size

    async def conclude(self, result: Any) -> None:
        """The body of a call's task: `serve`, and a status whatever becomes of it. The task itself never fails."""
        try:
            await self.serve(result)
        except (KeyboardInterrupt, SystemExit):
            raise
        except BaseException as error:  # noqa: BLE001 - as above
            self.fail(error)
        finally:
            self.task = None

    async def serve(self, result: Any) -> None:
        """What the task of a call does. Raises what the handler raises."""
        await self.complete(result)

    async def complete(self, result: Any) -> None:
        """What the handler gave back, awaited and sent. Raises what it raises."""
        if type(result) is Suspended:
            result = await result
        if not self.method.response_streaming:
            self.finish(result)
            return
        if result is not None:
            await self._send_each(result)
        self.end(self._code or Status.OK, self._details)

    async def _send_each(self, results: "AsyncIterator[Any] | Iterator[Any]") -> None:
        if not hasattr(results, "__aiter__"):
            for result in results:
                if not self.send(self.serialized(result)):
                    await self.room()
            return
        try:
            async for result in results:
                if not self.send(self.serialized(result)):
                    await self.room()
        finally:
            close: Any = getattr(results, "aclose", None)
            if close is not None:
                await close()

    def finish(self, result: Any) -> None:
        """The handler of a call with one answer has returned. Raises CallFailure."""
        if self.over:
            return
        if self._code:
            self.end(self._code, self._details)  # an error has no answer
        else:
            self.answer(self.serialized(result))

    def collect(self, buffer: bytes, start: int, stop: int) -> list[bytes]:
        """Messages completed by body bytes, counted against what a connection may hold. Raises CallFailure."""
        reader = self.reader
        if reader is None:
            limit = self.connection.limits.max_receive_message_length
            reader = self.reader = MessageReader(self.head.encoding, limit)
            self.untidy = True
        before = reader.size
        try:
            return reader.feed(buffer, start, stop)
        finally:
            self.count(reader.size - before)

    def count(self, size: int) -> None:
        """`size` bytes more (or less) wait for the rest of their request, or for their turn. Raises CallFailure."""
        self.untidy = True
        self._counted += size
        self.connection.buffered += size
        if size > 0 and self.connection.buffered > self.connection.limits.max_buffered:
            raise CallFailure(Status.RESOURCE_EXHAUSTED, "too much of unfinished requests on this connection")

    def tidy(self) -> None:
        """See CallContext."""
        self.reader = None
        self.connection.buffered -= self._counted
        self._counted = 0


class UnaryRequestCall(Call):
    """A call with one request."""

    _message: bytes | None = None

    def opened(self) -> None:
        """See Stream: the request is still to come, so its deadline must be watched."""
        self.start_timer()

    def data(self, buffer: bytes, start: int, stop: int, ended: bool) -> None:
        """See Stream. A whole message in a whole frame, as almost all come, is cut out once and not copied again."""
        if (
            ended
            and self.reader is None
            and self._message is None
            and stop - start >= 5
            and not buffer[start]
            and int.from_bytes(buffer[start + 1 : start + 5], "big") == stop - start - 5
            and stop - start - 5 <= self.connection.limits.max_receive_message_length
        ):
            self.begin(buffer[start + 5 : stop])
            return
        if self.over:
            return
        try:
            for message in self.collect(buffer, start, stop):
                if self._message is not None:
                    raise CallFailure(Status.INTERNAL, "more than one request to a method that takes one")
                self._message = message
                if not ended:
                    self.count(len(message))
        except CallFailure as failure:
            self.end(failure.status, failure.details)
            return
        if ended:
            self.ended()

    def ended(self) -> None:
        """See Stream."""
        if self.over:
            return
        if self._message is None or (self.reader is not None and self.reader.incomplete):
            self.end(Status.INTERNAL, "the request ended without a whole message")
            return
        message, self._message = self._message, None
        if self._counted:
            self.count(-self._counted)
        if self.reader is not None:
            try:
                message = self.reader.plain(message)
            except CallFailure as failure:
                self.end(failure.status, failure.details)
                return
        self.begin(message)

    def begin(self, message: bytes) -> None:
        """The request is complete: run the handler, or when no answer could leave anyway, later."""
        connection = self.connection
        if connection.sender.stalled:
            self._park(message)
            return
        if connection.buffered > connection.limits.max_buffered:
            self.end(Status.RESOURCE_EXHAUSTED, "too many requests wait on this connection")
            return
        deserialize = self.method.deserialize
        if deserialize is None:
            self.run(message, len(message))
            return
        try:
            request = deserialize(message)
        except Exception as error:  # noqa: BLE001 - whatever a deserializer raises is the caller's fault
            log.debug("a request to %s cannot be read: %r", self.head.path, error)
            self.end(Status.INTERNAL, "Exception deserializing request!")
            return
        self.run(request, len(message))

    def _park(self, message: bytes) -> None:
        """Wait until answers can leave; what waits is counted."""
        try:
            self.count(len(message) + PART_OVERHEAD)
        except CallFailure as failure:
            self.end(failure.status, failure.details)
            return
        self.start_timer()
        self._message = message
        self.protocol.parked[self.stream_id] = self

    def unpark(self) -> None:
        """It is this call's turn."""
        message, self._message = self._message, None
        if message is not None:
            self.count(-self._counted)
            self.begin(message)

    def tidy(self) -> None:
        """See CallContext."""
        super().tidy()
        if self._message is not None:
            self._message = None
            self.protocol.parked.pop(self.stream_id, None)
