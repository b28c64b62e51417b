"""Steps that both demos have: what is sent and read, and what is proven of it."""

import random
import time
from pathlib import Path
from typing import TYPE_CHECKING

from tandemmq.cli.demo.ledger import DemoLedger
from tandemmq.cli.demo.material import LIBRARY, PACKAGES, Material, gather
from tandemmq.cli.demo.producer import DemoProducer
from tandemmq.cli.demo.proof import Proof, stored_twice
from tandemmq.cli.demo.readers import ConsumerGroup
from tandemmq.cli.demo.teller import Teller
from tandemmq.cli.talk.moments import show_bytes, show_seconds

if TYPE_CHECKING:
    from tandemmq.client import StoreClient

MESSAGES = 5_000
SINGLES = 200
BATCHED = 800
LOOKUPS = 50

DISK_MAX = 200_000_000
MEMORY_MAX = 150_000_000
"""Promises of the embedded profile, at the start of a new store."""

SETTLE_SECONDS = 10.0
"""How long readers and index may take to catch up with what was acknowledged."""


class Steps:
    """One run: what it sends, what it has read, what it has found."""

    def __init__(self, teller: Teller, messages: int = MESSAGES) -> None:
        self._teller = teller
        self._material: Material = gather(messages)
        items = list(self._material.items)
        random.Random(2).shuffle(items)  # both topics side by side, the same way every time
        self._ledger = DemoLedger(items)
        self._proof = Proof(self._ledger)
        self._tags = self._material.commonest_tags(2)
        first = self._material.items[0].topic
        self._everything = ConsumerGroup("demo-everything", [PACKAGES, LIBRARY])
        self._filtered = ConsumerGroup("demo-filtered", [first], " || ".join(self._tags))
        packages = [item.key for item in items if item.topic == PACKAGES]
        self.example_key = packages[0] if packages else items[0].key

    def _tell_input(self) -> None:
        size, sources = self._material.size, self._material.sources
        count = len(self._ledger.entries)
        self._teller.step(
            "Input",
            f"{', '.join(sources)}: {count:,} messages with {show_bytes(size)} of bodies, each with a key and a tag.",
            sources=sources,
            messages=count,
            bytes=size,
        )

    def _check_size(self, what: str, disk: int, memory: int) -> None:
        """The promises of the embedded profile."""
        if disk >= DISK_MAX:
            self._proof.losses.append(f"{what} takes {show_bytes(disk)} of disk, not under {show_bytes(DISK_MAX)}")
        if memory >= MEMORY_MAX:
            self._proof.losses.append(
                f"{what} takes {show_bytes(memory)} of memory, not under {show_bytes(MEMORY_MAX)}"
            )

    def _send_a_part(self, client: "StoreClient", safe: str = "") -> None:
        for group in (self._everything, self._filtered):
            group.begin_at_the_end(client)
        producer, entries = DemoProducer(client, self._ledger), self._ledger.entries
        begun = time.perf_counter()
        producer.one_by_one(entries[:SINGLES])
        singles = time.perf_counter() - begun
        producer.in_batches(entries[SINGLES : SINGLES + BATCHED])
        without = SINGLES + BATCHED - len(self._ledger.places)
        self._teller.step(
            "Send",
            f"{SINGLES} messages one by one ({show_seconds(singles / SINGLES)} each), {BATCHED} in batches; "
            + (f"{without:,} have no good receipt." if without else f"all have receipts{safe}."),
            acknowledged=len(self._ledger.places),
            seconds_each=singles / SINGLES,
        )

    def _read_a_part(self, client: "StoreClient") -> None:
        everything, filtered = self._everything.catch_up(client), self._filtered.catch_up(client)
        self._teller.step(
            "Read",
            f"two consumer groups, each with its own offsets: one reads everything ({everything:,} messages), one only "
            f"the tags {self._filtered.tags} ({filtered:,}).",
            everything=everything,
            filtered=filtered,
        )

    def _read_the_rest(self, client: "StoreClient") -> None:
        begun = time.perf_counter()
        everything, filtered = self._everything.catch_up(client), self._filtered.catch_up(client)
        while len(self._everything.records) < len(self._ledger.places) and time.perf_counter() - begun < SETTLE_SECONDS:
            time.sleep(0.05)
            everything += self._everything.catch_up(client)
            filtered += self._filtered.catch_up(client)
        acknowledged = len(self._ledger.places)
        same = self._proof.of_everything(self._everything.records)
        of_tags = self._proof.of_filter(self._filtered.records, self._filtered.topics[0], self._tags)
        self._teller.step(
            "Read on",
            f"both groups go on where they stood before the kill ({everything:,} and {filtered:,} messages more). "
            f"Of {acknowledged:,} acknowledged messages {same:,} lie where their receipts say, with the same bytes; "
            f"the second group has the {of_tags:,} messages of its tags and no others.",
            acknowledged=acknowledged,
            same=same,
            filtered=of_tags,
            stored_twice=stored_twice(self._everything.records),
        )

    def _look_up(self, client: "StoreClient", where: str = "") -> None:
        chosen = random.Random(3).sample(self._ledger.acknowledged, min(LOOKUPS, len(self._ledger.acknowledged)))
        begun = time.perf_counter()
        good = self._proof.of_lookups(client, chosen)
        seconds = (time.perf_counter() - begun) / max(len(chosen), 1)
        example = f"One is {chosen[0].item.key}, id {self._ledger.places[chosen[0].unique_key].message_id}."
        self._teller.step(
            "Look up",
            f"{good} of {len(chosen)} messages, from before and after the kill, found by key and by id{where} with the "
            f"same bytes, {show_seconds(seconds)} each. {example}",
            looked_up=len(chosen),
            found=good,
            seconds_each=seconds,
        )

    def _verdict(self, seconds: float, where: str = "there, byte for byte") -> bool:
        acknowledged = len(self._ledger.places)
        missing = len(self._ledger.entries) - acknowledged
        losses = list(self._proof.losses)
        if missing:
            losses.append(f"{missing:,} messages were never acknowledged")
        told = f"{acknowledged:,} messages were acknowledged, and all of them are {where}."
        self._teller.verdict(not losses, told, losses, seconds=seconds, acknowledged=acknowledged)
        return not losses


def is_new(directory: Path) -> bool:
    """Whether no store was ever there."""
    return not (directory / "commitlog").is_dir()
