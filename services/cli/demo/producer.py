"""Sending, in the three ways there are; every receipt goes into the ledger."""

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

from tandemmq.cli.demo.ledger import DemoEntry, DemoLedger, ReceiptPlace

if TYPE_CHECKING:
    from tandemmq.client import Outgoing, StoreClient
    from tandemmq.store.v1.store_pb2 import SendBatchRequest, SendReceipt

BATCH = 50
"""Messages of a request."""

WINDOW = 16
"""Requests of a stream that may be without an answer, usually."""


class DemoProducer:
    """Sends entries of a ledger to a store."""

    def __init__(self, client: "StoreClient", ledger: DemoLedger) -> None:
        self._client, self._ledger = client, ledger
        self.handed_over = 0
        """Messages given to the last stream, with or without a receipt."""
        self.longest_wait = 0.0
        """Seconds between two receipts of the last stream."""
        self.weak: dict[str, ReceiptPlace] = {}
        """By unique key: where messages lie whose receipt is not PUT_OK: stored, but not as safely as asked."""
        self.statuses: Counter[str] = Counter()
        """What those receipts said."""

    def one_by_one(self, entries: Sequence[DemoEntry]) -> None:
        """A call a message."""
        for entry in entries:
            message = _message(entry)
            self._take(
                self._client.send(
                    message.topic, message.body, tag=message.tag, keys=message.keys, properties=dict(message.properties)
                )
            )

    def in_batches(self, entries: Sequence[DemoEntry]) -> None:
        """A call for many messages, of both topics as they come."""
        for at in range(0, len(entries), BATCH):
            for receipt in self._client.send_batch([_message(entry) for entry in entries[at : at + BATCH]]):
                self._take(receipt)

    def in_a_stream(
        self,
        entries: Sequence[DemoEntry],
        on_receipts: Callable[[int], None] = lambda count: None,
        in_flight: int = WINDOW,
    ) -> None:
        """One call, many batches in flight; `on_receipts` hears how many receipts came so far. Raises grpc.RpcError."""
        self.handed_over = count = 0
        self.longest_wait = 0.0
        window = threading.Semaphore(in_flight)
        last = time.perf_counter()
        try:
            for answer in self._client.stub.SendStream(self._requests(entries, window)):
                window.release()
                now = time.perf_counter()
                self.longest_wait, last = max(self.longest_wait, now - last), now
                for receipt in answer.receipts.receipts:
                    self._take(receipt)
                    count += 1
                on_receipts(count)
        finally:
            window.release(len(entries))  # whatever happened, the thread that feeds the stream must end

    def already_stored(self, entries: Sequence[DemoEntry]) -> int:
        """Ask the store for messages without a receipt, by unique key; those it has count as acknowledged."""
        found = [(entry, self.find(entry)) for entry in entries]
        for entry, place in found:
            if place is not None:
                self._ledger.acknowledge(entry.unique_key, place)
        return sum(place is not None for _, place in found)

    def find(self, entry: DemoEntry) -> ReceiptPlace | None:
        """Where the store has a message, found by its unique key."""
        from tandemmq.store.format.message_id import encode_offset_id

        for record in self._client.query(entry.item.topic, unique_key=entry.unique_key, max_messages=1):
            name = encode_offset_id(record.store_host, record.physical_offset)
            return ReceiptPlace(record.queue_id, record.queue_offset, record.physical_offset, name)
        return None

    def _requests(self, entries: Sequence[DemoEntry], window: threading.Semaphore) -> Iterator["SendBatchRequest"]:
        from tandemmq.store.v1.store_pb2 import SendBatchRequest

        for at in range(0, len(entries), BATCH):
            window.acquire()
            piece = entries[at : at + BATCH]
            self.handed_over += len(piece)
            yield SendBatchRequest(messages=[_message(entry).to_proto() for entry in piece])

    def _take(self, receipt: "SendReceipt") -> None:
        from tandemmq.store.v1.store_pb2 import PUT_OK, SendStatus

        place = ReceiptPlace(receipt.queue_id, receipt.queue_offset, receipt.physical_offset, receipt.message_id)
        if receipt.status == PUT_OK:
            self._ledger.acknowledge(receipt.unique_key, place)
            return
        self.statuses[SendStatus.Name(receipt.status)] += 1
        if receipt.message_id:
            self.weak[receipt.unique_key] = place


def _message(entry: DemoEntry) -> "Outgoing":
    from tandemmq.client import Outgoing

    item = entry.item
    return Outgoing(item.topic, item.body, item.tag, (item.key,), {"UNIQ_KEY": entry.unique_key})
