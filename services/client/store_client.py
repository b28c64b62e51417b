"""The client for ordinary, blocking programs. Safe to be used by several threads."""

import threading
from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager
from types import TracebackType
from typing import Self

import grpc

from tandemmq.client import results
from tandemmq.client.channels import File, open_channel
from tandemmq.client.encode import Outgoing, encode_batch
from tandemmq.client.errors import ClientError, from_refusal, from_rpc
from tandemmq.client.records import one_record
from tandemmq.client.results import Pulled, QueueOffsets
from tandemmq.client.stores_channel import ManyStores
from tandemmq.delivery.v1.delivery_pb2_grpc import DeliveryStub
from tandemmq.store.format.record import Record
from tandemmq.store.v1 import store_pb2
from tandemmq.store.v1.store_pb2_grpc import StoreStub

DEFAULT_TIMEOUT = 30.0

LOOK_SECONDS = 5.0
"""How long a store may take to say whether it is the master."""


class StoreClient:
    """A connection to one store, or to whichever of a broker answers. Use it as a context manager, or call `close`.

    Every call raises RequestFailed if the store refuses it, and StoreUnreachable if there is no answer in `timeout`
    seconds (a long poll has its own time on top). With several addresses a call goes on to the next one, or to the
    master that a store tells, unless it may have changed something.
    """

    def __init__(
        self,
        address: str | Sequence[str],
        *,
        timeout: float = DEFAULT_TIMEOUT,
        channel: grpc.Channel | None = None,
        user: str | None = None,
        secret: str | None = None,
        tls_ca: File | None = None,
        tls_certificate: File | None = None,
        tls_key: File | None = None,
    ) -> None:
        """`address`: `host:port`; several in a sequence, or with commas. One store is spoken to where one is given.

        `channel`: one of your own, which is closed with the client; the rest is not for it.

        `user` and `secret`: who calls, for a store with an access list. `tls_ca`: who signs the store's certificate
        (PEM); with it, or with a certificate of our own, the store is spoken to with TLS. `tls_certificate`, `tls_key`:
        that certificate and its key (PEM), for a store that asks for one.

        Raises UnusableFile, BadUserName; ValueError for one of two that go together.
        """
        self._channel = channel or open_channel(
            address, user=user, secret=secret, tls_ca=tls_ca, tls_certificate=tls_certificate, tls_key=tls_key
        )
        self._timeout = self.timeout = timeout
        self.stub: StoreStub = StoreStub(self._channel)
        """The generated stub, for what has no method here."""
        self.delivery: DeliveryStub = DeliveryStub(self._channel)
        """That of `tandemmq.delivery.v1`: for consuming as a group see `Consumer`."""

    def close(self) -> None:
        """End the connection."""
        self._channel.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def find_master(self) -> bool:
        """With several addresses: let what follows go to the master, also to one whose disk is full; else to any.

        Gives whether there is one; with one address always True. Streams begin where the last call was answered, and do
        not go on to another store by themselves.
        """
        stores = self._channel
        if not isinstance(stores, ManyStores):
            return True
        answering = ""
        for address in stores.places.all:
            try:
                log = StoreStub(stores.at(address)).GetLog(store_pb2.GetLogRequest(), timeout=LOOK_SECONDS)
            except grpc.RpcError:
                continue
            if log.state.master or log.state.writable:  # stores of older releases do not say the former
                stores.places.current = address
                return True
            answering = answering or address
        stores.places.current = answering or stores.places.current
        return False

    # -- sending ----------------------------------------------------------------------------------------------------

    def send(
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
        """Store one message; its receipt says where, and with which status (`PUT_OK`)."""
        message = Outgoing(topic, body, tag, keys, properties or {}, queue_id)
        with _translated():
            return self.stub.Send(results.send_request(message, no_wait), timeout=self._timeout).receipt

    def send_batch(self, messages: Iterable[Outgoing], *, no_wait: bool = False) -> list[store_pb2.SendReceipt]:
        """Store messages of any topics with one wait for the disk; the receipts in their order."""
        with _translated():
            answer = self.stub.SendBatch(results.batch_request(messages, no_wait), timeout=self._timeout)
        return list(answer.receipts)

    def send_encoded(
        self, messages: Iterable[Outgoing], *, queue_id: int | None = None, no_wait: bool = False
    ) -> store_pb2.BatchReceipt:
        """Store messages of one topic in one queue, the fast way: RocketMQ's client batch."""
        request = store_pb2.SendBatchRequest(batches=[encode_batch(messages, queue_id=queue_id)], no_wait=no_wait)
        with _translated():
            return self.stub.SendBatch(request, timeout=self._timeout).batch_receipts[0]

    def send_stream(
        self, topic: str, batches: Iterable[Iterable[Outgoing]], *, queue_id: int | None = None, no_wait: bool = False
    ) -> Iterator[store_pb2.BatchReceipt]:
        """Store batches of one topic, many in flight; a receipt for each, in order.

        Raises RequestFailed at the first batch that is refused; those after it may have been stored.
        """
        requests = (
            store_pb2.SendBatchRequest(batches=[encode_batch(batch, topic, queue_id)], no_wait=no_wait)
            for batch in batches
        )
        self.find_master()
        with _translated(self._channel):
            for answer in self.stub.SendStream(requests):
                if answer.HasField("refusal"):
                    raise from_refusal(answer.refusal)
                yield answer.receipts.batch_receipts[0]

    # -- pulling ----------------------------------------------------------------------------------------------------

    def pull(
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
        """Messages of a queue from an offset on; waits for some up to `wait_seconds`. `tags`: `A || B`.

        A message whose checksum does not fit is left out, and is in `Pulled.damaged` (unless `verify` is False): the
        store is asked for it once more, and so learns of the damage. Raises DamagedMessage where an answer cannot be
        taken apart.
        """
        request = results.pull_request(topic, queue_id, offset, max_messages, max_bytes, tags, wait_seconds, group)
        with _translated():
            answer = self.stub.Pull(request, timeout=self._timeout + wait_seconds)
        return self._mended(results.pulled(answer, verify=verify))

    def pull_stream(
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
    ) -> Generator[Pulled, None, None]:
        """Messages of a queue from an offset on, for ever; stop by leaving the loop.

        Backpressure is that of the connection: the store stops when the reader does. Answers without records tell that
        the offset was corrected or moved on (see `Pulled.status`).
        """
        request = results.pull_request(topic, queue_id, offset, max_messages, max_bytes, tags, 0, group)
        ended = _OpenSide(store_pb2.PullStreamRequest(subscribe=request))
        call = self.stub.PullStream(ended)
        try:
            with _translated(self._channel):
                for answer in call:
                    yield self._mended(results.pulled(answer, verify=verify))
        finally:
            ended.end()
            call.cancel()

    def _mended(self, answer: Pulled) -> Pulled:
        """The answer, with the messages that came damaged if the store has them better."""
        if not answer.damaged:
            return answer
        return results.mended(answer, [self._second_look(record) for record in answer.damaged])

    def _second_look(self, damaged: Record) -> Record | None:
        try:
            with _translated():
                shown = self.stub.ViewMessage(results.second_look(damaged), timeout=self._timeout)
            return results.seen_again(damaged, one_record(shown.record))
        except ClientError as error:
            results.warn_of_damage(damaged, error)
            return None

    # -- finding ----------------------------------------------------------------------------------------------------

    def view(self, message_id: str) -> Record:
        """One message by its offset id. Raises DamagedMessage too, against a store that does not look itself."""
        request = store_pb2.ViewMessageRequest(message_id=message_id)
        with _translated():
            return one_record(self.stub.ViewMessage(request, timeout=self._timeout).record)

    def query(
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
            return results.intact(self.stub.QueryMessage(request, timeout=self._timeout).records)

    def offsets(
        self, topic: str, queue_id: int | None = None, *, timestamp_ms: int | None = None
    ) -> list[QueueOffsets]:
        """First and next offsets of one queue or all; with a time also the offset at that time."""
        request = store_pb2.GetOffsetsRequest(topic=topic, queue_id=queue_id, timestamp=timestamp_ms)
        with _translated():
            return results.queue_offsets(self.stub.GetOffsets(request, timeout=self._timeout))

    def queues(self, topic: str = "") -> store_pb2.ListQueuesResponse:
        """All topics (or one) with their queues, and the state of the log."""
        with _translated():
            return self.stub.ListQueues(store_pb2.ListQueuesRequest(topic=topic), timeout=self._timeout)

    def log(self) -> store_pb2.GetLogResponse:
        """Where the log's files lie on the store's host, how far they may be read, and how they are cut."""
        with _translated():
            return self.stub.GetLog(store_pb2.GetLogRequest(), timeout=self._timeout)


class _OpenSide:
    """One request, and then nothing more until `end`: the client's side of a stream that stays open."""

    def __init__(self, request: store_pb2.PullStreamRequest) -> None:
        self._request: store_pb2.PullStreamRequest | None = request
        self._over = threading.Event()

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> store_pb2.PullStreamRequest:
        request, self._request = self._request, None
        if request is not None:
            return request
        self._over.wait()
        raise StopIteration

    def end(self) -> None:
        self._over.set()


@contextmanager
def _translated(stream_of: object = None) -> Iterator[None]:
    """Make our own errors of gRPC's; `stream_of`: the channel, if it is a stream that may fail."""
    try:
        yield
    except grpc.RpcError as error:
        failed = from_rpc(error)
        if isinstance(stream_of, ManyStores):
            stream_of.stream_ended(failed)
        raise failed from None
