"""The client of a TandemMQ store: send messages, pull them, find them.

Sending and pulling::

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

The same with `await`: `tandemmq.client.aio.StoreClient`. Raw records, as they come from a pull or lie in a commit log
file, are taken apart by `decode_records`. What a store refuses raises `RequestFailed`, with the name of the gRPC status
and of RocketMQ's.
"""

from tandemmq.client.encode import Outgoing, encode_batch
from tandemmq.client.errors import ClientError, RequestFailed, StoreUnreachable, UnusableFile
from tandemmq.client.identity import Identity
from tandemmq.client.records import decode_records
from tandemmq.client.results import Pulled, QueueOffsets
from tandemmq.client.store_client import StoreClient
from tandemmq.store.format.record import CorruptRecord, Record

__all__ = [
    "ClientError",
    "CorruptRecord",
    "Identity",
    "Outgoing",
    "Pulled",
    "QueueOffsets",
    "Record",
    "RequestFailed",
    "StoreClient",
    "StoreUnreachable",
    "UnusableFile",
    "decode_records",
    "encode_batch",
]
