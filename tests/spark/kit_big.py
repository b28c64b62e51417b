"""A large store, written as fast as the store itself can: batches that producers laid out, its own dispatch behind."""

import asyncio
import random
from pathlib import Path

from tandemmq.store.format import properties
from tandemmq.store.format.batch import encode_client_batch
from tandemmq.store.format.host import Host
from tandemmq.store.log.message_store import MessageStore
from tandemmq.store.log.segments.commit_log import EncodedBatch
from tests.spark.kit import Sizes

BATCH = 1_000
TOPICS = [f"Topic{number}" for number in range(7)] + ["订单"]
_BLOBS = 40
_TURN = 50  # batches between two turns of the loop


class _Clock:
    """Goes on by a few milliseconds for each batch."""

    now = 1_700_000_000_000

    def now_ms(self) -> int:
        """The time that was set."""
        return self.now


def _blobs(chance: random.Random) -> list[bytes]:
    """Batches with keys of their own, shared keys, several keys, none; short bodies."""
    found = []
    for blob in range(_BLOBS):
        items = []
        for number in range(BATCH):
            pairs = {} if number % 50 == 7 else {"KEYS": f"k{blob}-{number}" if number % 9 else f"all {number % 4} Aa"}
            if number % 3 == 0:
                pairs["TAGS"] = f"tag{number % 5}"
            items.append((0, chance.randbytes(chance.randrange(90, 111)), properties.encode(pairs)))
        found.append(encode_client_batch(items))
    return found


def write(root: Path, sizes: Sizes, messages: int, seed: int) -> None:
    """Make the store; what is in its queues and index is its own dispatch's work."""

    async def run() -> None:
        chance, clock, host = random.Random(seed), _Clock(), Host("127.0.0.1", 10911)
        blobs = _blobs(chance)
        store = MessageStore.open(sizes.config(root, checkpoint_log_bytes=1 << 40), clock=clock)
        store.start()
        for number in range(messages // BATCH):
            clock.now += chance.randrange(9)
            batch = EncodedBatch(
                chance.choice(TOPICS), chance.randrange(4), chance.choice(blobs), host, host, clock.now
            )  # fmt: skip
            store.append_batch(batch)
            if number % _TURN == 0:
                await asyncio.sleep(0)
        await store.close()

    asyncio.run(run())
