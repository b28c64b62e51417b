"""Consuming as a group: translate, ask delivery, answer. The streams are in modules of their own."""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Sequence
from contextlib import aclosing, suppress
from functools import partial
from typing import Any, TypeVar, cast

import grpc

from tandemmq.common.errors import Kind, TandemError
from tandemmq.common.grpc_transport import connection_of
from tandemmq.delivery.v1 import delivery_pb2, delivery_pb2_grpc
from tandemmq.store.broker.errors import StoreStarting
from tandemmq.store.broker.rules import check_not_negative
from tandemmq.store.delivery.errors import BadInvisibleTime
from tandemmq.store.delivery.members.groups import GroupConfig, GroupTable
from tandemmq.store.delivery.members.sessions import Member, Sessions
from tandemmq.store.delivery.port import Batch, DeliveryPort
from tandemmq.store.delivery.receiving.receive_rules import MOST_INVISIBLE_MS
from tandemmq.store.fronts.native import delivery_answers, delivery_requests
from tandemmq.store.fronts.native.attendance import HEARTBEAT_MS, Attendance
from tandemmq.store.fronts.native.delivery_requests import MOST_HANDLES, check_count
from tandemmq.store.fronts.native.limits import ServiceLimits
from tandemmq.store.fronts.native.receive_stream import ReceiveStream
from tandemmq.store.fronts.native.requests import peer_host
from tandemmq.store.fronts.native.room import room_to_answer
from tandemmq.store.fronts.native.statuses import STATUSES
from tandemmq.store.fronts.native.timed import timed
from tandemmq.store.metrics import StoreMetrics

Context = grpc.aio.ServicerContext[Any, Any]
Result = TypeVar("Result")

OF_ONE_ITEM = frozenset(
    {
        Kind.INVALID,
        Kind.BAD_HANDLE,
        Kind.HANDLE_EXPIRED,
        Kind.BAD_INVISIBLE_TIME,
        Kind.NO_SUCH_QUEUE,
        Kind.QUEUE_OUT_OF_RANGE,
    }
)
"""Errors that say something of one item of a request; any other is one of the whole request."""


class DeliveryServicer(delivery_pb2_grpc.DeliveryServicer):
    """`tandemmq.delivery.v1.Delivery`; what each call means is written in the contract, delivery.proto."""

    def __init__(self, limits: ServiceLimits, metrics: StoreMetrics) -> None:
        """Every call is refused with StoreStarting until `attach`."""
        self.metrics = metrics
        self._limits = limits.pull
        self._delivery: DeliveryPort | None = None
        self._attendance: Attendance | None = None
        self._groups: GroupTable | None = None

    def attach(self, delivery: DeliveryPort, sessions: Sessions, groups: GroupTable) -> None:
        """Answer from a recovered store from now on."""
        self._delivery = delivery
        self._groups = groups
        self._attendance = Attendance(sessions)

    def drain(self) -> None:
        """End the streams on which clients are asked. Receives that wait are ended by delivery itself."""
        if self._attendance is not None:
            self._attendance.stop()

    @property
    def delivery(self) -> DeliveryPort:
        """What answers. Raises StoreStarting."""
        if self._delivery is None:
            raise _starting()
        return self._delivery

    @property
    def attendance(self) -> Attendance:
        """Who is there. Raises StoreStarting."""
        if self._attendance is None:
            raise _starting()
        return self._attendance

    # -- receiving --------------------------------------------------------------------------------------------------

    async def Receive(self, request: delivery_pb2.ReceiveRequest, context: Context) -> delivery_pb2.ReceiveResponse:
        """Messages, now or when there are some."""
        begun = time.perf_counter()
        outcome = "SUCCESS"
        try:
            wish = delivery_requests.wish(request, self._limits)
            batch = await self.delivery.receive(wish, partial(room_to_answer, context))
            return self._answered(batch, request, context)
        except TandemError as error:
            outcome = STATUSES[error.kind].rocketmq
            raise
        finally:
            seconds = time.perf_counter() - begun
            self.metrics.called("Receive", outcome, seconds, long_polling=request.wait_ms > 0)

    def _answered(
        self, batch: Batch, request: delivery_pb2.ReceiveRequest, context: Context
    ) -> delivery_pb2.ReceiveResponse:
        """The answer; its messages count as given when it is on its way."""
        try:
            response = delivery_answers.received(batch, request.form)
        except BaseException:
            batch.release()
            raise

        def ended(context: Context) -> None:
            if context.cancelled():
                batch.release()
            else:
                batch.sent(connection_of(context))

        context.add_done_callback(ended)  # type: ignore[arg-type]  # the stubs want a class of their own
        return response

    async def ReceiveStream(
        self, request_iterator: AsyncIterator[delivery_pb2.ReceiveStreamRequest], context: Context
    ) -> AsyncIterator[delivery_pb2.ReceiveResponse]:
        """See `ReceiveStream`."""
        room = partial(room_to_answer, context)
        stream = ReceiveStream(self.delivery, self._limits, room, connection_of(context))
        async with aclosing(stream.run(request_iterator)) as stream_answers:
            with suppress(StopAsyncIteration):
                while True:  # no name for the answer: it is sent while this waits
                    yield await anext(stream_answers)

    # -- what became of messages ------------------------------------------------------------------------------------

    @timed
    async def Acknowledge(
        self, request: delivery_pb2.AcknowledgeRequest, context: Context
    ) -> delivery_pb2.AcknowledgeResponse:
        """Messages are dealt with."""
        handles = delivery_requests.handles(request)
        done = await self.delivery.acknowledge(request.group, request.topic, handles)
        return delivery_pb2.AcknowledgeResponse(outcomes=delivery_answers.outcomes(done))

    @timed
    async def ChangeInvisible(
        self, request: delivery_pb2.ChangeInvisibleRequest, context: Context
    ) -> delivery_pb2.ChangeInvisibleResponse:
        """Messages come again at another time."""
        check_count("changes", request.changes, MOST_HANDLES)
        done = await each([self._change(request.group, request.topic, one) for one in request.changes])
        return delivery_pb2.ChangeInvisibleResponse(
            outcomes=[
                delivery_answers.outcome(one) if isinstance(one, TandemError) else delivery_answers.outcome(None, one)
                for one in done
            ]
        )

    async def _change(self, group: str, topic: str, change: delivery_pb2.InvisibleChange) -> str:
        """The handle that counts from now on. Raises as the port, BadInvisibleTime."""
        if not change.unseen:
            return await self.delivery.change_invisible(group, topic, change.handle, change.invisible_ms)
        if change.invisible_ms:
            raise BadInvisibleTime(
                f"invisible_ms is {change.invisible_ms} for a message that nobody has looked at: it comes at once.",
                remedy="Leave invisible_ms out, or unseen.",
            )
        await self.delivery.give_back(group, topic, change.handle)
        return change.handle

    @timed
    async def ForwardToDeadLetters(
        self, request: delivery_pb2.ForwardToDeadLettersRequest, context: Context
    ) -> delivery_pb2.ForwardToDeadLettersResponse:
        """Messages go to the dead letters."""
        handles = delivery_requests.handles(request)
        done = await each([self.delivery.forward(request.group, request.topic, handle) for handle in handles])
        return delivery_pb2.ForwardToDeadLettersResponse(outcomes=[delivery_answers.outcome(one) for one in done])

    @timed
    async def SendBack(self, request: delivery_pb2.SendBackRequest, context: Context) -> delivery_pb2.SendBackResponse:
        """A message that was pulled comes again."""
        check_not_negative("physical_offset", request.physical_offset)
        check_not_negative("max_reconsume_times", request.max_reconsume_times)
        await self.delivery.send_back(
            request.group, request.physical_offset, request.delay_level, request.max_reconsume_times
        )
        return delivery_pb2.SendBackResponse()

    @timed
    async def CommitOffsets(
        self, request: delivery_pb2.CommitOffsetsRequest, context: Context
    ) -> delivery_pb2.CommitOffsetsResponse:
        """All below offsets is dealt with."""
        check_count("commits", request.commits, MOST_HANDLES)
        for one in request.commits:
            check_not_negative("offset", one.offset)
            check_not_negative("queue_id", one.queue_id)
        commit = partial(self.delivery.commit, request.group)
        done = await each([commit(one.topic, one.queue_id, one.offset) for one in request.commits])
        return delivery_pb2.CommitOffsetsResponse(outcomes=[delivery_answers.outcome(one) for one in done])

    # -- of senders -------------------------------------------------------------------------------------------------

    @timed
    async def EndTransaction(
        self, request: delivery_pb2.EndTransactionRequest, context: Context
    ) -> delivery_pb2.EndTransactionResponse:
        """A transaction ends."""
        ending = delivery_requests.ending(request)
        await self.delivery.end_transaction(request.group, request.handle, ending, checked=request.checked)
        return delivery_pb2.EndTransactionResponse()

    @timed
    async def Recall(self, request: delivery_pb2.RecallRequest, context: Context) -> delivery_pb2.RecallResponse:
        """A message that waits for its time is taken back."""
        unique_key = await self.delivery.recall(request.topic, request.handle, peer_host(context.peer()))
        return delivery_pb2.RecallResponse(unique_key=unique_key)

    # -- who is there -----------------------------------------------------------------------------------------------

    @timed
    async def Heartbeat(
        self, request: delivery_pb2.HeartbeatRequest, context: Context
    ) -> delivery_pb2.HeartbeatResponse:
        """A client is there."""
        members = self.attendance.heartbeat(request, str(peer_host(context.peer())))
        groups = self._groups_of(members)
        return delivery_pb2.HeartbeatResponse(
            next_ms=HEARTBEAT_MS,
            retry_max_times={one.name: one.retry_max_times for one in groups},
            retry_waits={one.name: _waits(one.retry_policy) for one in groups if one.retry_policy},
        )

    def _groups_of(self, members: Sequence[Member]) -> list[GroupConfig]:
        """The groups of consumers among them that there are."""
        groups = self._groups
        names = {one.group for one in members if not one.producer}
        return [] if groups is None else [one for one in map(groups.get, names) if one is not None]

    @timed
    async def Leave(self, request: delivery_pb2.LeaveRequest, context: Context) -> delivery_pb2.LeaveResponse:
        """A client ends."""
        check_count("groups", request.groups, delivery_requests.MOST_MEMBERSHIPS)
        for group in request.groups:
            self.attendance.leave(request.client_id, group)
            self.delivery.gone(group, request.client_id)
        return delivery_pb2.LeaveResponse()

    async def Attend(
        self, request_iterator: AsyncIterator[delivery_pb2.HeartbeatRequest], context: Context
    ) -> AsyncIterator[delivery_pb2.AttendResponse]:
        """See `Attendance.attend`."""
        address = str(peer_host(context.peer()))
        async with aclosing(self.attendance.attend(request_iterator, address)) as commands:
            async for command in commands:
                yield command


async def each(calls: Sequence[Awaitable[Result]]) -> list[Result | TandemError]:
    """What becomes of calls that are made in one turn; raises the first error that is not of one item alone."""
    done = await asyncio.gather(*calls, return_exceptions=True)
    for one in done:
        if isinstance(one, BaseException) and not (isinstance(one, TandemError) and one.kind in OF_ONE_ITEM):
            raise one
    return cast(list[Result | TandemError], done)


def _starting() -> StoreStarting:
    return StoreStarting("The store is still recovering.", remedy="Try again when its health says SERVING.")


def _waits(policy: Sequence[int]) -> delivery_pb2.RetryWaits:
    """As consumers may ask for them."""
    return delivery_pb2.RetryWaits(ms=[min(one, MOST_INVISIBLE_MS) for one in policy])
