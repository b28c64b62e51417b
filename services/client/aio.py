"""The client for asyncio programs: the same calls as `tandemmq.client.StoreClient`, awaited.

::

    async with StoreClient("127.0.0.1:8081") as store:
        await store.send("orders", b"one espresso")
        async for pulled in store.pull_stream("orders", 0, offset=0):
            ...

Sending and consuming as a group, which is what most programs want::

    async with Producer("127.0.0.1:8081") as producer:
        await producer.send("orders", b"one espresso")

    async with Consumer("127.0.0.1:8081", group="billing", topic="orders") as consumer:
        async for message in consumer:
            ...
            await message.ack()

    await worker(handle, "127.0.0.1:8081", group="billing", topic="orders")
"""

from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from contextlib import contextmanager
from types import TracebackType
from typing import TYPE_CHECKING, Self

import grpc

from tandemmq.client import results
from tandemmq.client.aio_consumer import Consumer, Message
from tandemmq.client.aio_producer import Producer, Transaction, TransactionState
from tandemmq.client.aio_worker import DeadLetter, Retry, WorkerCounts, worker
from tandemmq.client.channels import File, open_aio_channel
from tandemmq.client.encode import Outgoing, encode_batch
from tandemmq.client.errors import ClientError, from_refusal, from_rpc
from tandemmq.client.records import one_record
from tandemmq.client.results import Pulled, QueueOffsets
from tandemmq.client.store_client import DEFAULT_TIMEOUT, LOOK_SECONDS
from tandemmq.client.stores_channel import ManyStores
from tandemmq.store.format.record import Record
from tandemmq.store.v1 import store_pb2
from tandemmq.store.v1.store_pb2_grpc import StoreStub

if TYPE_CHECKING:
    from tandemmq.store.v1.store_pb2_grpc import StoreAsyncStub

__all__ = [
    "Consumer",
    "DeadLetter",
    "Message",
    "Producer",
    "Retry",
    "StoreClient",
    "Transaction",
    "TransactionState",
    "WorkerCounts",
    "worker",
]


class StoreClient:
    """A connection to one store, or to whichever of a broker answers, for one event loop.

    `tandemmq.client.StoreClient` says what calls mean and raise.
    """

    def __init__(
        self,
        address: str | Sequence[str],
        *,
        timeout: float = DEFAULT_TIMEOUT,
        channel: grpc.aio.Channel | None = None,
        user: str | None = None,
        secret: str | None = None,
        tls_ca: File | None = None,
        tls_certificate: File | None = None,
        tls_key: File | None = None,
    ) -> None:
        """The same arguments as those of `tandemmq.client.StoreClient`."""
        self._channel = channel or open_aio_channel(
            address, user=user, secret=secret, tls_ca=tls_ca, tls_certificate=tls_certificate, tls_key=tls_key
        )
        self._timeout = timeout
        self.stub: StoreAsyncStub = StoreStub(self._channel)

    async def close(self) -> None:
        """End the connection."""
        await self._channel.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def find_master(self) -> bool:
        """With several addresses: let what follows go to the master, also to one whose disk is full; else to any."""
        stores = self._channel
        if not isinstance(stores, ManyStores):
            return True
        answering = ""
        for address in stores.places.all:
            stub: StoreAsyncStub = StoreStub(stores.at(address))
            try:
                log = await stub.GetLog(store_pb2.GetLogRequest(), timeout=LOOK_SECONDS)
            except grpc.aio.AioRpcError:
                continue
            if log.state.master or log.state.writable:  # stores of older releases do not say the former
                stores.places.current = address
                return True
            answering = answering or address
        stores.places.current = answering or stores.places.current
        return False

    async def send(
        self,
        topic: str,
        body: bytes,
        *,
        tag: str = "",
        keys: Sequence[str] = (),
        properties: dict[str, str] | None = None,
        queue_id: int | None = None,
        no_wait: bool = False,
    ) -> store_pb2.SendReceipt:
        """Store one message."""
        message = Outgoing(topic, body, tag, keys, properties or {}, queue_id)
        with _translated():
            return (await self.stub.Send(results.send_request(message, no_wait), timeout=self._timeout)).receipt

    async def send_batch(self, messages: Iterable[Outgoing], *, no_wait: bool = False) -> list[store_pb2.SendReceipt]:
        """Store messages of any topics with one wait for the disk."""
        with _translated():
            answer = await self.stub.SendBatch(results.batch_request(messages, no_wait), timeout=self._timeout)
        return list(answer.receipts)

    async def send_encoded(
        self, messages: Iterable[Outgoing], *, queue_id: int | None = None, no_wait: bool = False
    ) -> store_pb2.BatchReceipt:
        """Store messages of one topic in one queue, the fast way."""
        request = store_pb2.SendBatchRequest(batches=[encode_batch(messages, queue_id=queue_id)], no_wait=no_wait)
        with _translated():
            return (await self.stub.SendBatch(request, timeout=self._timeout)).batch_receipts[0]

    async def send_stream(
        self,
        topic: str,
        batches: AsyncIterator[Iterable[Outgoing]],
        *,
        queue_id: int | None = None,
        no_wait: bool = False,
    ) -> AsyncIterator[store_pb2.BatchReceipt]:
        """Store batches of one topic, many in flight; a receipt for each, in order."""
        requests = (
            store_pb2.SendBatchRequest(batches=[encode_batch(batch, topic, queue_id)], no_wait=no_wait)
            async for batch in batches
        )
        await self.find_master()
        with _translated(self._channel):
            async for answer in self.stub.SendStream(requests):
                if answer.HasField("refusal"):
                    raise from_refusal(answer.refusal)
                yield answer.receipts.batch_receipts[0]

    async def pull(
        self,
        topic: str,
        queue_id: int,
        offset: int,
        *,
        max_messages: int = 0,
        max_bytes: int = 0,
        tags: str = "",
        wait_seconds: float = 0,
        group: str = "",
        verify: bool = True,
    ) -> Pulled:
        """Messages of a queue from an offset on; waits for some up to `wait_seconds`."""
        request = results.pull_request(topic, queue_id, offset, max_messages, max_bytes, tags, wait_seconds, group)
        with _translated():
            answer = await self.stub.Pull(request, timeout=self._timeout + wait_seconds)
        return await self._mended(results.pulled(answer, verify=verify))

    async def pull_stream(
        self,
        topic: str,
        queue_id: int,
        offset: int,
        *,
        max_messages: int = 0,
        max_bytes: int = 0,
        tags: str = "",
        group: str = "",
        verify: bool = True,
    ) -> AsyncIterator[Pulled]:
        """Messages of a queue from an offset on, for ever; stop by leaving the loop."""
        request = results.pull_request(topic, queue_id, offset, max_messages, max_bytes, tags, 0, group)
        call = self.stub.PullStream()
        try:
            with _translated(self._channel):
                await call.write(store_pb2.PullStreamRequest(subscribe=request))
                async for answer in call:
                    yield await self._mended(results.pulled(answer, verify=verify))
        finally:
            call.cancel()

    async def _mended(self, answer: Pulled) -> Pulled:
        """The answer, with the messages that came damaged if the store has them better."""
        if not answer.damaged:
            return answer
        return results.mended(answer, [await self._second_look(record) for record in answer.damaged])

    async def _second_look(self, damaged: Record) -> Record | None:
        try:
            with _translated():
                shown = await self.stub.ViewMessage(results.second_look(damaged), timeout=self._timeout)
            return results.seen_again(damaged, one_record(shown.record))
        except ClientError as error:
            results.warn_of_damage(damaged, error)
            return None

    async def view(self, message_id: str) -> Record:
        """One message by its offset id."""
        request = store_pb2.ViewMessageRequest(message_id=message_id)
        with _translated():
            return one_record((await self.stub.ViewMessage(request, timeout=self._timeout)).record)

    async def query(
        self,
        topic: str,
        *,
        key: str | None = None,
        unique_key: str | None = None,
        begin_ms: int = 0,
        end_ms: int = 0,
        max_messages: int = 0,
    ) -> list[Record]:
        """Messages by one of their keys, or by their unique key, newest first."""
        request = results.query_request(topic, key, unique_key, begin_ms, end_ms, max_messages)
        with _translated():
            return results.intact((await self.stub.QueryMessage(request, timeout=self._timeout)).records)

    async def offsets(
        self, topic: str, queue_id: int | None = None, *, timestamp_ms: int | None = None
    ) -> list[QueueOffsets]:
        """First and next offsets of one queue or all; with a time also the offset at that time."""
        request = store_pb2.GetOffsetsRequest(topic=topic, queue_id=queue_id, timestamp=timestamp_ms)
        with _translated():
            return results.queue_offsets(await self.stub.GetOffsets(request, timeout=self._timeout))

    async def queues(self, topic: str = "") -> store_pb2.ListQueuesResponse:
        """All topics (or one) with their queues, and the state of the log."""
        with _translated():
            return await self.stub.ListQueues(store_pb2.ListQueuesRequest(topic=topic), timeout=self._timeout)

    async def log(self) -> store_pb2.GetLogResponse:
        """Where the log's files lie on the store's host, how far they may be read, and how they are cut."""
        with _translated():
            return await self.stub.GetLog(store_pb2.GetLogRequest(), timeout=self._timeout)


@contextmanager
def _translated(stream_of: object = None) -> Iterator[None]:
    """Make our own errors of gRPC's; `stream_of`: the channel, if it is a stream that may fail."""
    try:
        yield
    except grpc.aio.AioRpcError as error:
        failed = from_rpc(error)
        if isinstance(stream_of, ManyStores):
            stream_of.stream_ended(failed)
        raise failed from None
