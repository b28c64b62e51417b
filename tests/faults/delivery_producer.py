"""A producer of the delivery campaigns, as a process that may be killed in the midst of a send, or ended by SIGTERM.

    python -m tests.faults.delivery_producer --addresses a:1,b:2 --name p --events file --seed 7 --pause 0.02

Sends plain messages, those of message groups, delayed, timed, of transactions. What it does goes to a file before and
after each call, as a consumer's does: of what it was killed in, nobody knows whether it was stored.
"""

import argparse
import random
import signal
import sys
import threading
import zlib
from collections.abc import Sequence
from pathlib import Path

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


class Producer:
    """Sends one message after the other to whichever node is the master. Each is tried once only."""

    def __init__(self, addresses: Sequence[str], name: str, seed: str, recorder: Recorder, pause: float) -> None:
        self.name = name
        self._addresses = addresses
        self._random = random.Random(seed)
        self._record = recorder
        self._pause = pause
        self._ending = threading.Event()
        self._at = 0
        self._number = 0

    def end(self) -> None:
        """No more after the message that is under way."""
        self._ending.set()

    def run(self) -> None:
        """Until it is to end."""
        clients = [StoreClient(address, timeout=30) for address in self._addresses]
        try:
            while not self._ending.is_set():
                try:
                    self._send(clients[self._at % len(clients)])
                    self._ending.wait(self._pause * self._random.random() * 2)
                except (ClientError, grpc.RpcError):
                    self._at += 1
                    self._ending.wait(0.05)
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


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--addresses", required=True)
    parser.add_argument("--events", type=Path, required=True)
    parser.add_argument("--name", required=True)
    parser.add_argument("--seed", required=True)
    parser.add_argument("--pause", type=float, required=True)
    arguments = parser.parse_args()
    recorder = Recorder(arguments.events)
    producer = Producer(arguments.addresses.split(","), arguments.name, arguments.seed, recorder, arguments.pause)
    signal.signal(signal.SIGTERM, lambda *_: producer.end())
    producer.run()
    return 0


if __name__ == "__main__":
    sys.exit(main())
