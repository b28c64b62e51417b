"""The store's calls with one request and one answer; the streams are in modules of their own."""

import time
from collections.abc import AsyncIterator
from contextlib import aclosing, suppress
from functools import partial
from typing import Any

import grpc
from google.protobuf.message import DecodeError

from tandemmq.common.errors import TandemError
from tandemmq.common.grpc_transport import answer_at_once, append_field
from tandemmq.common.slices import Slices, each
from tandemmq.store.broker.broker import Broker
from tandemmq.store.broker.errors import StoreStarting
from tandemmq.store.broker.group_transfer import PutStatus
from tandemmq.store.broker.send import NewMessage, SentAll
from tandemmq.store.format.host import Host
from tandemmq.store.format.record import decode_record
from tandemmq.store.fronts.held_answer import SendCore
from tandemmq.store.fronts.native import answers, requests
from tandemmq.store.fronts.native.limits import ServiceLimits
from tandemmq.store.fronts.native.pull_stream import PullStream
from tandemmq.store.fronts.native.requests import peer_host
from tandemmq.store.fronts.native.room import room_to_answer
from tandemmq.store.fronts.native.send_stream import SendStream, StoredBatch
from tandemmq.store.fronts.native.statuses import STATUSES
from tandemmq.store.fronts.native.timed import timed
from tandemmq.store.metrics import StoreMetrics
from tandemmq.store.v1 import message_pb2, store_pb2, store_pb2_grpc

Context = grpc.aio.ServicerContext[Any, Any]

DEFAULT_QUERY_MESSAGES = 32
DEFAULT_UNIQUE_MESSAGES = 64


class StoreServicer(store_pb2_grpc.StoreServicer):
    """`tandemmq.store.v1.Store`; what each call means is written in the contract, store.proto."""

    def __init__(self, limits: ServiceLimits, metrics: StoreMetrics) -> None:
        """Every call is refused with StoreStarting until `attach`."""
        self.limits = limits
        self.metrics = metrics
        self._broker: Broker | None = None
        self._core = ""
        self._batches: SendCore | None = None
        self._send_streams: set[SendStream] = set()

    def attach(self, broker: Broker, core: str = "", batches: SendCore | None = None) -> None:
        """Answer from a recovered store from now on. `core`: what its plain sends go through, in words.

        `batches` is asked first about requests of a SendStream that come as bytes.
        """
        self._broker = broker
        self._core = core
        self._batches = batches

    def drain(self) -> None:
        """End what would else go on for ever: long polls and streams. What was appended is still answered."""
        self.broker.stop()
        for stream in tuple(self._send_streams):
            stream.stop()

    @property
    def broker(self) -> Broker:
        """What answers. Raises StoreStarting."""
        if self._broker is None:
            raise StoreStarting("The store is still recovering.", remedy="Try again when its health says SERVING.")
        return self._broker

    # -- sending ----------------------------------------------------------------------------------------------------

    async def Send(self, request: store_pb2.SendRequest, context: Context) -> store_pb2.SendResponse:
        """One message.

        Measured in place (`timed` would cost a coroutine more), and never suspended but to wait for the disk: the
        transport makes a task only for a call that waits.
        """
        begun = time.perf_counter()
        outcome = "SUCCESS"
        try:
            broker = self._broker or self.broker
            new = requests.new_message(request.message, peer_host(context.peer()))
            return answers.send_response(await broker.send(new, wait=not request.no_wait))
        except TandemError as error:
            outcome = STATUSES[error.kind].rocketmq
            raise
        finally:
            self.metrics.called("Send", outcome, time.perf_counter() - begun)

    async def SendBatch(self, request: store_pb2.SendBatchRequest, context: Context) -> store_pb2.SendBatchResponse:
        """Many messages, one wait. Measured in place as Send."""
        begun = time.perf_counter()
        outcome = "SUCCESS"
        try:
            return await self.receipts(await self.append(request, peer_host(context.peer())))
        except TandemError as error:
            outcome = STATUSES[error.kind].rocketmq
            raise
        finally:
            self.metrics.called("SendBatch", outcome, time.perf_counter() - begun)

    async def SendStream(
        self, request_iterator: AsyncIterator[store_pb2.SendBatchRequest], context: Context
    ) -> AsyncIterator[store_pb2.SendStreamResponse]:
        """See `SendStream`."""
        stream = SendStream(self, self.limits.stream_window, partial(append_field, context))
        peer = peer_host(context.peer())
        answer_at_once(context, partial(stream.answer_at_once, peer=peer))
        self._send_streams.add(stream)
        try:
            async with aclosing(stream.run(request_iterator, peer)) as stream_answers:
                async for answer in stream_answers:
                    yield answer
        except DecodeError:
            await context.abort(grpc.StatusCode.INTERNAL, "Exception deserializing request!")
        finally:
            self._send_streams.discard(stream)

    @property
    def waits(self) -> bool:
        """Whether sends wait for the disk or for replicas."""
        return self.broker.acknowledgement.waits

    def store_at_once(self, request: bytes, peer: Host) -> StoredBatch | None:
        """Append all of a request by the core; None where it does not take it, and nothing is stored."""
        core = self._batches
        if core is None or self.broker.acknowledgement.refuses:
            return None
        answer = core.answer(request, peer.packed)
        return None if answer is None else StoredBatch(answer, core.end_offset, core.waits)

    async def status(self, stored: StoredBatch) -> PutStatus:
        """The status of what the core has appended, when it is as safe as it was asked to be."""
        acknowledgement = self.broker.acknowledgement
        if not acknowledgement.waits:
            return PutStatus.PUT_OK
        return await acknowledgement.status(stored.end_offset, stored.wait)

    async def append(self, request: store_pb2.SendBatchRequest, peer: Host) -> SentAll:
        """Append all of a request. Raises as `Broker.append`."""
        messages: list[NewMessage] = []
        if request.messages:
            new_message = partial(requests.new_message, peer=peer)
            messages = await each(new_message, request.messages, Slices(self.broker.store.timers))
        batches = [requests.new_batch(batch, peer) for batch in request.batches]
        return await self.broker.append(messages, batches, wait=not request.no_wait)

    async def receipts(self, sent: SentAll) -> store_pb2.SendBatchResponse:
        """The answer to an appended request, when its messages are as safe as they were asked to be."""
        status = await self.broker.acknowledged(sent)
        return await answers.receipts(sent, status, Slices(self.broker.store.timers))

    # -- pulling ----------------------------------------------------------------------------------------------------

    async def Pull(self, request: store_pb2.PullRequest, context: Context) -> store_pb2.PullResponse:
        """Messages of a queue, now or when there are some."""
        begun = time.perf_counter()
        outcome = "UNKNOWN_ERROR"
        try:
            wanted = requests.wanted(request, self.limits.pull)
            room = partial(room_to_answer, context)
            pulled = await self.broker.pull(wanted, request.wait_ms / 1000, room)
            outcome = pulled.status.name
        except TandemError as error:
            outcome = STATUSES[error.kind].rocketmq
            raise
        finally:
            self.metrics.called("Pull", outcome, time.perf_counter() - begun, long_polling=request.wait_ms > 0)
        return answers.pull_response(pulled, request.form, self.broker.advice(pulled), partial(append_field, context))

    async def PullStream(
        self, request_iterator: AsyncIterator[store_pb2.PullStreamRequest], context: Context
    ) -> AsyncIterator[store_pb2.PullResponse]:
        """See `PullStream`."""
        stream = PullStream(self, partial(room_to_answer, context), partial(append_field, context))
        async with aclosing(stream.run(request_iterator)) as stream_answers:
            with suppress(StopAsyncIteration):
                while True:  # no name for the answer: it is sent while this waits
                    yield await anext(stream_answers)

    # -- finding ----------------------------------------------------------------------------------------------------

    @timed
    async def ViewMessage(
        self, request: store_pb2.ViewMessageRequest, context: Context
    ) -> store_pb2.ViewMessageResponse:
        """One message by its offset id."""
        record = self.broker.view(request.message_id)
        if request.form == message_pb2.DECODED:
            return store_pb2.ViewMessageResponse(message=answers.stored_message(decode_record(record, verify=False)))
        return store_pb2.ViewMessageResponse(record=record)

    @timed
    async def QueryMessage(
        self, request: store_pb2.QueryMessageRequest, context: Context
    ) -> store_pb2.QueryMessageResponse:
        """Messages by key."""
        unique = request.WhichOneof("by") == "unique_key"
        found = self.broker.by_key(
            request.topic,
            request.unique_key if unique else request.key,
            request.begin_timestamp,
            request.end_timestamp,
            request.max_messages or (DEFAULT_UNIQUE_MESSAGES if unique else DEFAULT_QUERY_MESSAGES),
            unique=unique,
        )
        answer = store_pb2.QueryMessageResponse(count=len(found), indexed_up_to=self.broker.store.dispatched_offset)
        if request.form == message_pb2.DECODED:
            answer.messages.extend(answers.decoded(b"".join(found)))
        else:
            answer.records = b"".join(found)
        return answer

    @timed
    async def GetOffsets(self, request: store_pb2.GetOffsetsRequest, context: Context) -> store_pb2.GetOffsetsResponse:
        """Where queues begin and end."""
        at = request.timestamp if request.HasField("timestamp") else None
        if request.HasField("queue_id"):
            states = [self.broker.offsets_of(request.topic, request.queue_id, at)]
        else:
            states = await self.broker.offsets(request.topic, at)
        return store_pb2.GetOffsetsResponse(queues=[answers.queue_offsets(state) for state in states])

    @timed
    async def ListQueues(self, request: store_pb2.ListQueuesRequest, context: Context) -> store_pb2.ListQueuesResponse:
        """The topics, their queues, and the state of the log."""
        topics = [
            answers.topic_queues(state, self.metrics.taken_bytes(state.topic))
            async for state in self.broker.list_topics(request.topic or None)
        ]
        return store_pb2.ListQueuesResponse(topics=topics, log=answers.log_state(self.broker.store))

    @timed
    async def GetLog(self, request: store_pb2.GetLogRequest, context: Context) -> store_pb2.GetLogResponse:
        """Where the log's files are, and how far they may be read."""
        return answers.log_files(self.broker.store, self._core, self.metrics.send_times())
