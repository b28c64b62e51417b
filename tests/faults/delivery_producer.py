"""Producers of the delivery campaigns: plain messages, those of message groups, delayed, timed, of transactions."""

import random
import threading
import zlib
from collections.abc import Sequence

import grpc

from tandemmq.client import ClientError, StoreClient
from tandemmq.delivery.v1 import delivery_pb2 as pb
from tandemmq.store.format import properties
from tandemmq.store.v1.store_pb2 import SendReceipt, SendStatus
from tests.faults.delivery_consumer import TOPIC, Recorder, now
from tests.faults.harness import body_of

QUEUES = 4
TAGS = ("T0", "T1", "T2")
KEYS = 5
"""Message groups of one producer."""


class Producer(threading.Thread):
    """Sends one message after the other to whichever node is the master. Each is tried once only."""

    def __init__(self, addresses: Sequence[str], name: str, seed: int, recorder: Recorder, pause: float) -> None:
        super().__init__(name=name, daemon=True)
        self.acknowledged = 0
        self.broken: BaseException | None = None
        self._addresses = addresses
        self._random = random.Random(f"{seed} {name}")
        self._record = recorder
        self._pause = pause
        self._ending = threading.Event()
        self._at = 0
        self._number = 0

    def end(self) -> None:
        """No more after the message that is under way."""
        self._ending.set()

    def run(self) -> None:
        clients = [StoreClient(address, timeout=30) for address in self._addresses]
        try:
            while not self._ending.is_set():
                try:
                    self._send(clients[self._at % len(clients)])
                    self._ending.wait(self._pause * self._random.random() * 2)
                except (ClientError, grpc.RpcError):
                    self._at += 1
                    self._ending.wait(0.05)
        except BaseException as error:  # noqa: BLE001 - the campaign looks at it
            self.broken = error
        finally:
            for client in clients:
                client.close()

    def _send(self, client: StoreClient) -> None:
        self._number += 1
        value = f"{self.name}-{self._number}"
        ways = [self._plain, self._keyed, self._timed, self._delayed, self._transaction]
        self._random.choices(ways, (4, 5, 1.5, 1, 1))[0](client, value)

    def _call(
        self, client: StoreClient, value: str, named: dict[str, str], *, due: float = 0, key: str = "", queue: int = 0
    ) -> SendReceipt:
        tag = self._random.choice(TAGS)
        self._record("send", value=value, begun=now(), tag=tag, key=key, due=due, copied=bool(named and not key))
        return client.send(TOPIC, body_of(value), tag=tag, keys=[value], properties=named, queue_id=queue)

    def _told(self, value: str, receipt: SendReceipt) -> None:
        if receipt.status == SendStatus.PUT_OK:
            self.acknowledged += 1
            self._record("sent", value=value, at=now(), queue=receipt.queue_id, offset=receipt.queue_offset)

    def _plain(self, client: StoreClient, value: str) -> None:
        self._told(value, self._call(client, value, {}, queue=self._random.randrange(QUEUES)))

    def _keyed(self, client: StoreClient, value: str) -> None:
        key = f"{self.name}-k{self._random.randrange(KEYS)}"
        queue = zlib.crc32(key.encode()) % QUEUES
        self._told(value, self._call(client, value, {properties.SHARDING_KEY: key}, key=key, queue=queue))

    def _timed(self, client: StoreClient, value: str) -> None:
        wait = self._random.choice([20, 200, 1_000, 3_000])
        begun = now()
        named = (
            {"TIMER_DELAY_MS": str(wait)}
            if self._random.random() < 0.5
            else {"TIMER_DELIVER_MS": str(int(begun) + wait)}
        )
        receipt = self._call(client, value, named, due=int(begun) + wait, queue=self._random.randrange(QUEUES))
        self._told(value, receipt)
        if wait >= 3_000 and self._random.random() < 0.5:
            self._record("recall", value=value)
            client.delivery.Recall(pb.RecallRequest(topic=TOPIC, handle=receipt.recall_handle), timeout=30)
            self._record("never", value=value, at=now())

    def _delayed(self, client: StoreClient, value: str) -> None:
        due = int(now()) + 1_000
        self._told(value, self._call(client, value, {"DELAY": "1"}, due=due, queue=self._random.randrange(QUEUES)))

    def _transaction(self, client: StoreClient, value: str) -> None:
        named = {"TRAN_MSG": "true", "PGROUP": "producers"}
        receipt = self._call(client, value, named, queue=self._random.randrange(QUEUES))
        if receipt.status != SendStatus.PUT_OK:
            return
        ending = pb.COMMIT if self._random.random() < 0.7 else pb.ROLLBACK
        request = pb.EndTransactionRequest(
            topic=TOPIC, handle=receipt.transaction_handle, group="producers", ending=ending
        )
        client.delivery.EndTransaction(request, timeout=30)
        if ending == pb.COMMIT:
            self._told(value, receipt)
        else:
            self._record("never", value=value, at=now())
