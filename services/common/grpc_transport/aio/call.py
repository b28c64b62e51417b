"""Calls with one request: `UnaryRequestCall`; the streams of requests are in stream_call.py.

The handler may be a coroutine function, an async generator, or a plain function (which must not block): what it gives
back decides. It runs when the request is complete, in the same turn of the event loop, and if it need not wait its
answer is in the same write as those of its neighbours.
"""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import suppress
from contextvars import Context
from functools import partial
from typing import Any

import grpc

from tandemmq.common.grpc_transport.aio.checks import Metadata, number
from tandemmq.common.grpc_transport.aio.context import TASK_STEP_SECONDS, CallContext, log
from tandemmq.common.grpc_transport.aio.first_step import Suspended
from tandemmq.common.grpc_transport.aio.handlers import HELD, Direct
from tandemmq.common.grpc_transport.aio.holding import NO_ROOM, PROGRESS
from tandemmq.common.grpc_transport.http2.budget import NEXT_TO_NOTHING
from tandemmq.common.grpc_transport.rpc.messages import PART_OVERHEAD, MessageReader
from tandemmq.common.grpc_transport.rpc.status import CallFailure, Status

TOO_SLOW = "the caller did not go on reading its answer, or sending its request, in time"


def settle_future(future: "asyncio.Future[None]") -> None:
    """It is done, if it was not."""
    if not future.done():
        future.set_result(None)


class Call(CallContext):
    """What calls of all kinds share: running a handler to its end, and collecting messages."""

    reader: MessageReader | None = None
    """Collects messages that do not come in one piece."""
    _counted = 0
    """Bytes of this call in `connection.buffered`."""
    _mark: "tuple[int, int, float] | None" = None
    """How far the peer had come when it last did, and when that was; see `stands`."""

    def run(self, request: Any, size: int) -> None:
        """Call the handler with a request of `size` bytes; whatever comes of it ends the call."""
        method = self.method
        try:
            result = self.protocol.server.take_step(self.protocol.loop, method.behavior, request, self)
            if type(result) is Suspended:
                self._wait(size)
                self.begin_task(result, result.context)
                self.stand_in = result.stand_in
            elif method.response_streaming and result is not None:
                self._wait(size)
                self.begin_task(result)
            elif method.response_streaming:  # it has written its answers
                self.end(self._code or Status.OK, self._details)
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

    def begin_task(self, result: Any, context: Context | None = None) -> None:
        """The rest of the call is a task's; its first step is in a later turn, and paid for in this one."""
        self.task = self.protocol.server.begin(self.conclude(result), context)
        self.protocol.slice_ends -= TASK_STEP_SECONDS

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
        answers: Any = results.__aiter__()
        try:
            with suppress(StopAsyncIteration):
                while True:  # no name for an answer: while its bytes wait for the caller, it need not
                    if not self.send(self.serialized(await anext(answers))):
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
            message = self.serialized(result)
            if len(message) > NEXT_TO_NOTHING and len(message) > self.method.largest:
                self.method.largest = len(message)
            self.answer(message)

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
        if size <= 0:
            return
        if self.connection.buffered > self.connection.limits.max_buffered:
            raise CallFailure(Status.RESOURCE_EXHAUSTED, "too much of unfinished requests on this connection")
        if self.protocol.server.budget.tight:
            self.protocol.claim(0)

    async def room_for(self, size: int) -> bool:
        """See `answering.room_for`."""
        protocol, loop = self.protocol, self.protocol.loop
        self.method.asks_for_room = True
        budget = protocol.server.budget
        await self._turn_for(size)
        if not budget.tight and not self.connection.sender.pending_bytes:
            return True
        deadline = loop.time() + self.connection.limits.room_seconds
        while not protocol.may_hold(size):
            if self.over or loop.time() >= deadline:
                protocol.server.told.refused += 1
                return False
            given_back: asyncio.Future[None] = loop.create_future()
            timer = loop.call_at(deadline, settle_future, given_back)
            budget.waiting[given_back] = partial(settle_future, given_back)
            try:
                await given_back
            finally:
                timer.cancel()
                budget.waiting.pop(given_back, None)
            await self._turn_for(size)  # many may find room at the same time: what a crowd gave back that was ended
        return True

    async def _turn_for(self, size: int) -> None:
        if size > NEXT_TO_NOTHING:
            await self.protocol.server.turns.large(self.protocol.account)

    # -- peers that do not get on -------------------------------------------------------------------------------------

    @property
    def unfinished(self) -> bool:
        """The peer has begun a message, could send more of it, and has not."""
        return not self.remote_ended and not self.held and self.reader is not None and self.reader.incomplete

    @property
    def shut_out(self) -> bool:
        """The request is here and was not begun."""
        return False

    def stands(self, now: float, patience: float) -> bool:
        """See Stream."""
        left = 0 if self.pending is None else sum(map(len, self.pending))
        if not left and not self.shut_out and not (self.unfinished and not self.over):
            self._mark = None
            return False
        if self._mark is None or self._came_on(*self._mark[:2], left):
            self._mark = left, self.received, now
        return now - self._mark[2] > patience

    def _came_on(self, left: int, received: int, left_now: int) -> bool:
        return left_now > left or left - left_now >= PROGRESS or self.received - received >= PROGRESS

    def give_up_on_peer(self) -> None:
        """See Stream. The caller is told: trailers need no window."""
        if self.over:
            self.break_off(Status.RESOURCE_EXHAUSTED, TOO_SLOW)
            return
        self.end(Status.RESOURCE_EXHAUSTED, TOO_SLOW)
        self.cancel_task()

    def tidy(self) -> None:
        """See CallContext."""
        self.reader = None
        self.connection.buffered -= self._counted
        self._counted = 0


class UnaryRequestCall(Call):
    """A call with one request."""

    _message: bytes | None = None
    _wanting = False
    """It waits for room in the budget."""

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
        if self.connection.sender.stalled:
            if self._keep(message):
                self.protocol.park(self)
            return
        self._start(message)

    def _start(self, message: bytes) -> None:
        """It is this call's turn; but a method whose answers are large is not begun before there is room for one.

        Unless its handler asks for room itself: it knows how large this one is.
        """
        connection, largest = self.connection, 0 if self.method.asks_for_room else self.method.largest
        if largest and self.protocol.server.budget.tight and not self.protocol.may_hold(largest):
            if connection.sender.pending_bytes:
                self.protocol.server.told.refused += 1
                self.end(Status.RESOURCE_EXHAUSTED, NO_ROOM)
            elif self._keep(message):
                self._wanting = True
                self.protocol.server.budget.waiting[self] = self._look_again
            return
        if connection.buffered > connection.limits.max_buffered:
            self.end(Status.RESOURCE_EXHAUSTED, "too many requests wait on this connection")
            return
        direct = self.method.direct
        if direct is None or not self._answered(direct, message):
            self._handle(message)

    def go_on_with(self, message: bytes, said: Direct) -> None:
        """The short way was asked already; `said` gives what it gave, or raises what it raised."""
        if not self._answered(said, message):
            self._handle(message)

    def go_on_waiting(self, size: int, deadline: float | None) -> None:
        """It was held somewhere else: its request, of so many bytes, counts here, and its deadline is watched here."""
        self._deadline = deadline
        self._wait(size)

    def go_on_gathering(self, deadline: float | None, parts: list[bytes], left: int) -> None:
        """Its request began to come somewhere else; its deadline is watched here.

        `parts` of a message that lacks `left` bytes; -1: nothing has come.
        """
        self._deadline = deadline
        self.start_timer()
        if left >= 0:
            self.collect(b"", 0, 0)
            assert self.reader is not None
            self.reader.go_on_after(parts, left)
            self._counted += self.reader.size
            self.connection.buffered += self.reader.size

    def _handle(self, message: bytes) -> None:
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

    def _answered(self, direct: Direct, message: bytes) -> bool:
        """Whether the short way was taken. Where it fails nobody tries again: something may have changed."""
        try:
            answer = direct(message, self)
            if answer is None:
                return False
            if answer is HELD:
                self._wait(len(message))
            else:
                self.answer(answer)
        except Exception as error:  # noqa: BLE001 - every call gets a status
            self.fail(error)
        return True

    def answer_later(self, answer: bytes) -> None:
        """See DirectCall."""
        try:
            self.answer(answer)
        except Exception as error:  # noqa: BLE001 - as above
            self.fail(error)
        self.protocol.answered()

    def hand_over(self, message: bytes) -> None:
        """See DirectCall. The handler begins outside of any task."""
        self.protocol.loop.call_soon(self._handle_held, message, context=self.protocol.context)

    def end_with(self, code: grpc.StatusCode, details: str, trailing: Metadata) -> None:
        """See DirectCall."""
        self.set_trailing_metadata(trailing)
        self.end(number(code), details)

    def _handle_held(self, message: bytes) -> None:
        """What it was held for is counted anew, for as long as the handler waits."""
        if not self.over:
            self.count(-self._counted)
            self._handle(message)

    @property
    def gone(self) -> bool:
        """See DirectCall."""
        return self.over

    @property
    def has_room(self) -> bool:
        """See DirectCall."""
        return not self.protocol.server.budget.tight and not self.connection.sender.pending_bytes

    def _keep(self, message: bytes) -> bool:
        """Keep a request that must wait; what waits is counted. False when that is too much: the call has ended."""
        try:
            self.count(len(message) + PART_OVERHEAD)
        except CallFailure as failure:
            self.end(failure.status, failure.details)
            return False
        self.start_timer()
        self._message = message
        return True

    def unpark(self) -> None:
        """It is this call's turn."""
        message, self._message = self._message, None
        if message is not None:
            self.count(-self._counted)
            self._start(message)

    def _look_again(self) -> None:
        """Something was given back to the budget."""
        self._want_no_more()
        self.protocol.run_later(self)

    def _want_no_more(self) -> None:
        self._wanting = False
        self.protocol.server.budget.waiting.pop(self, None)

    @property
    def unfinished(self) -> bool:
        """See Call; a unary request is one message, whether it was begun or not."""
        return not self.remote_ended

    @property
    def shut_out(self) -> bool:
        """See Call."""
        return self.remote_ended and self._message is not None

    def tidy(self) -> None:
        """See CallContext."""
        super().tidy()
        if self._message is not None:
            self._message = None
            self.protocol.parked.pop(self.stream_id, None)
            if self._wanting:
                self._want_no_more()
