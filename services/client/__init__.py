"""The client of TandemMQ: send messages and consume them as a group; or pull them, and find them.

Sending::

    from tandemmq.client import Producer

    with Producer("127.0.0.1:8081") as producer:
        producer.send("orders", b"one espresso", tag="coffee", keys=["order-17"])
        producer.send("orders", b"paid", order_key="customer-4")            # groups made with --fifo keep the order
        producer.send_after("orders", b"still hot?", 600)                   # in ten minutes

Consuming: a message comes until it is acknowledged, to one member of the group at a time::

    from tandemmq.client import Consumer

    with Consumer("127.0.0.1:8081", group="billing", topic="orders") as consumer:
        for message in consumer:
            print(message.body, message.delivery_number)
            message.ack()                                                   # or .retry(after=10), .dead_letter()

A process that only works: what the handler raises is tried again::

    from tandemmq.client import worker

    worker(handle, "127.0.0.1:8081", group="billing", topic="orders", concurrency=8)

docs/client.md has more, transactions too. The same with `await`: `tandemmq.client.aio`. Against a pair give both
addresses. Which module has what::

    producer, consumer, working              for programs without asyncio, over
    aio_producer, aio_consumer, aio_worker   the same for asyncio
    outgoing, message                        what is sent and what comes
    holding                                  what a consumer holds: renewed, settled, given back
    cluster, stores_channel, places          the stores of a broker: calls go to whoever answers
    lingering                                messages that are sent together
    statuses                                 what becomes of a message, and of a pull
    observing, metrics, tracing              what a program may see of all this: Prometheus, OpenTelemetry
    attending                                streams on which the broker asks
    background                               the event loop of the plain clients
    store_client, aio, results, records, encode, channels, identity, errors

One store, one queue: sending and pulling::

    from tandemmq.client import Outgoing, StoreClient

    with StoreClient("127.0.0.1:8081") as store:
        receipt = store.send("orders", b"one espresso", tag="coffee", keys=["order-17"])
        store.send_batch([Outgoing("orders", b"two teas", tag="tea"), Outgoing("bills", b"...")])

        pulled = store.pull("orders", receipt.queue_id, offset=0, tags="coffee || tea", wait_seconds=5)
        for record in pulled.records:
            print(record.queue_offset, record.tags, record.body)
        next_time = pulled.next_offset

        for record in store.query("orders", key="order-17"):
            print(record.store_timestamp, record.body)

Fast, for a program that has much to send: batches in RocketMQ's own form, many in flight::

        batches = ([Outgoing("orders", body) for body in bodies] for bodies in chunks)
        for receipt in store.send_stream("orders", batches):
            print(receipt.first_queue_offset, receipt.count)

A store with TLS and an access list::

    StoreClient("store.example:8081", user="alice", secret="...", tls_ca="ca.pem")

Raw records, as they come from a pull or lie in a commit log
file, are taken apart by `decode_records`. What a store refuses raises `RequestFailed`, with the name of the gRPC status
and of RocketMQ's; its subclasses say what a program can do about it (`errors`).
"""

import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tandemmq.client.aio_producer import TransactionState
    from tandemmq.client.aio_worker import DeadLetter, Retry, WorkerCounts
    from tandemmq.client.consumer import Consumer, Message
    from tandemmq.client.encode import Outgoing, encode_batch
    from tandemmq.client.errors import (
        ClientError,
        ClientFault,
        DamagedMessage,
        FilterRefused,
        GroupRefused,
        NoLongerHeld,
        NotDurable,
        NotMaster,
        NotReplicated,
        NotTaken,
        Recovering,
        Refused,
        RequestFailed,
        Retriable,
        StoreUnreachable,
        TransactionOver,
        UnusableFile,
    )
    from tandemmq.client.identity import Identity
    from tandemmq.client.message import MessageContent
    from tandemmq.client.observing import ClientObserver
    from tandemmq.client.outgoing import Sent
    from tandemmq.client.producer import Producer, Transaction
    from tandemmq.client.records import decode_records
    from tandemmq.client.results import Pulled, QueueOffsets
    from tandemmq.client.statuses import PulledStatus, SendStatus
    from tandemmq.client.store_client import StoreClient
    from tandemmq.client.working import worker
    from tandemmq.store.format.record import CorruptRecord, Record

__all__ = [
    "ClientError",
    "ClientFault",
    "ClientObserver",
    "Consumer",
    "CorruptRecord",
    "DamagedMessage",
    "DeadLetter",
    "FilterRefused",
    "GroupRefused",
    "Identity",
    "Message",
    "MessageContent",
    "NoLongerHeld",
    "NotDurable",
    "NotMaster",
    "NotReplicated",
    "NotTaken",
    "Outgoing",
    "Producer",
    "Pulled",
    "PulledStatus",
    "QueueOffsets",
    "Record",
    "Recovering",
    "Refused",
    "RequestFailed",
    "Retriable",
    "Retry",
    "SendStatus",
    "Sent",
    "StoreClient",
    "StoreUnreachable",
    "Transaction",
    "TransactionOver",
    "TransactionState",
    "UnusableFile",
    "WorkerCounts",
    "decode_records",
    "encode_batch",
    "worker",
]


if not TYPE_CHECKING:  # checkers of types know the names above, and no others
    _HOMES = {
        "tandemmq.client.aio_producer": ("TransactionState",),
        "tandemmq.client.aio_worker": ("DeadLetter", "Retry", "WorkerCounts"),
        "tandemmq.client.consumer": ("Consumer", "Message"),
        "tandemmq.client.encode": ("Outgoing", "encode_batch"),
        "tandemmq.client.errors": (
            "ClientError",
            "ClientFault",
            "DamagedMessage",
            "FilterRefused",
            "GroupRefused",
            "NoLongerHeld",
            "NotDurable",
            "NotMaster",
            "NotReplicated",
            "NotTaken",
            "Recovering",
            "Refused",
            "RequestFailed",
            "Retriable",
            "StoreUnreachable",
            "TransactionOver",
            "UnusableFile",
        ),
        "tandemmq.client.identity": ("Identity",),
        "tandemmq.client.message": ("MessageContent",),
        "tandemmq.client.observing": ("ClientObserver",),
        "tandemmq.client.outgoing": ("Sent",),
        "tandemmq.client.producer": ("Producer", "Transaction"),
        "tandemmq.client.records": ("decode_records",),
        "tandemmq.client.results": ("Pulled", "QueueOffsets"),
        "tandemmq.client.statuses": ("PulledStatus", "SendStatus"),
        "tandemmq.client.store_client": ("StoreClient",),
        "tandemmq.client.working": ("worker",),
        "tandemmq.store.format.record": ("CorruptRecord", "Record"),
    }
    """Where each name comes from. It is loaded when it is asked for: one who sends needs no asyncio of ours."""

    def __getattr__(name: str) -> Any:
        from importlib import import_module

        if f"{__name__}.{name}" in _HOMES:
            return import_module(f"{__name__}.{name}")
        for home, names in _HOMES.items():
            if name in names:
                found = globals()[name] = getattr(import_module(home), name)
                return found
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}", name=name, obj=sys.modules[__name__])

    def __dir__() -> list[str]:
        return sorted({*globals(), *__all__})
