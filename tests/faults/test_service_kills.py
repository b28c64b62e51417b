"""The whole service, `python -m tandemmq.store`, killed with -9 while clients send to it over gRPC, again and again."""

import random
import signal
import threading
from collections import Counter
from pathlib import Path

import pytest

from tandemmq.client import ClientError, Outgoing, StoreClient
from tests.contract.store_process import StoreProcess
from tests.faults.harness import SEED, body_of, value_of

KILLS = 15
TOPIC = "orders"
SENDERS = 2
PUT_OK = 1


class Sender(threading.Thread):
    """Sends until nobody answers; remembers what was acknowledged. ``enough`` is set when it has so many."""

    def __init__(self, address: str, name: str, enough: int) -> None:
        super().__init__(name=name)
        self.acked: dict[str, tuple[int, int]] = {}
        self.reached = threading.Event()
        self.unexpected: BaseException | None = None
        self._address = address
        self._enough = enough

    def run(self) -> None:
        number = 0
        try:
            with StoreClient(self._address, timeout=100) as client:
                while True:
                    values = [f"{self.name}-{number + at}" for at in range(5)]
                    number += 5
                    messages = [Outgoing(TOPIC, body_of(value), keys=[value]) for value in values]
                    receipts = client.send_batch(messages)
                    for value, receipt in zip(values, receipts, strict=True):
                        if receipt.status == PUT_OK:
                            self.acked[value] = receipt.queue_id, receipt.queue_offset
                    if len(self.acked) >= self._enough:
                        self.reached.set()
        except ClientError:
            pass
        except Exception as error:  # noqa: BLE001 - the test looks at it
            self.unexpected = error
        finally:
            self.reached.set()


def read_all(client: StoreClient) -> dict[tuple[int, int], str]:
    """Every message of the topic, by queue and offset."""
    found = {}
    for queue in client.offsets(TOPIC):
        offset = queue.min_offset
        while offset < queue.max_offset:
            pulled = client.pull(TOPIC, queue.queue_id, offset, max_messages=500)
            for record in pulled.records:
                found[queue.queue_id, record.queue_offset] = value_of(record.body)
            assert pulled.next_offset > offset, "a pull makes no progress"
            offset = pulled.next_offset
    return found


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("flush", ["SYNC_FLUSH", "ASYNC_FLUSH"])
def test_a_killed_service_has_everything_it_acknowledged(tmp_path: Path, flush: str) -> None:
    chance = random.Random(SEED)
    acked: dict[str, tuple[int, int]] = {}
    with StoreProcess(tmp_path / "store", flush_disk_type=flush) as store:
        for life in range(KILLS // 2 + 1):
            senders = [Sender(store.address, f"c{life}-p{at}", chance.randrange(10, 400)) for at in range(SENDERS)]
            for sender in senders:
                sender.start()
            senders[0].reached.wait(120)
            store.stop(signal.SIGKILL)
            for sender in senders:
                sender.join(120)
                assert not sender.is_alive()
                assert sender.unexpected is None
                acked |= sender.acked
            store.start()
            with store.client() as client:
                found = read_all(client)
                lost = {value: place for value, place in acked.items() if found.get(place) != value}
                assert not lost
                assert max(Counter(found.values()).values()) == 1, "a message twice"
                value = chance.choice([*acked])
                hits = client.query(TOPIC, key=value)
                assert [record.queue_offset for record in hits] == [acked[value][1]]
    assert len(acked) > 100
