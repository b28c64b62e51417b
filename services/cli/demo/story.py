"""The demo, step by step. Each step does one thing, says it in a sentence or two, and keeps the numbers for --json."""

import random
import time
from pathlib import Path
from typing import TYPE_CHECKING

from tandemmq.cli.demo.child import StoreProcess, bytes_on_disk
from tandemmq.cli.demo.ledger import Entry, Ledger
from tandemmq.cli.demo.material import LIBRARY, PACKAGES, Material, gather
from tandemmq.cli.demo.producer import Producer
from tandemmq.cli.demo.proof import Proof, stored_twice
from tandemmq.cli.demo.readers import ConsumerGroup
from tandemmq.cli.demo.teller import Teller
from tandemmq.cli.failures import CommandFailed
from tandemmq.cli.moments import show_bytes, show_seconds

if TYPE_CHECKING:
    from tandemmq.client import StoreClient

MESSAGES = 5_000
SINGLES = 200
BATCHED = 800
LOOKUPS = 50

DISK_MAX = 200_000_000
MEMORY_MAX = 150_000_000
"""Promises of the embedded profile, at the start of a new store."""

_SETTLE_SECONDS = 10.0
"""How long readers and index may take to catch up with what was acknowledged."""


class Demo:
    """One run over one store directory."""

    def __init__(self, directory: Path, teller: Teller, messages: int = MESSAGES) -> None:
        self._teller = teller
        self._directory = directory
        self._is_new = not (directory / "commitlog").is_dir()
        self._store = StoreProcess(directory)
        self._material: Material = gather(messages)
        items = list(self._material.items)
        random.Random(2).shuffle(items)  # both topics side by side, the same way every time
        self._ledger = Ledger(items)
        self._proof = Proof(self._ledger)
        self._tags = self._material.commonest_tags(2)
        first = self._material.items[0].topic
        self._everything = ConsumerGroup("demo-everything", [PACKAGES, LIBRARY])
        self._filtered = ConsumerGroup("demo-filtered", [first], " || ".join(self._tags))
        self._found_stored = 0
        self._in_flight: list[Entry] = []
        packages = [item.key for item in items if item.topic == PACKAGES]
        self.example_key = packages[0] if packages else items[0].key

    def run(self) -> bool:
        """Tell the whole story; True if nothing was lost and all promises were kept."""
        from tandemmq.client import StoreClient

        begun = time.perf_counter()
        try:
            self._start()
            with StoreClient(self._store.address) as client:
                self._send_a_part(client)
                self._read_a_part(client)
                self._kill_while_sending(client)
            self._start_again()
            with StoreClient(self._store.address) as client:
                self._send_the_rest(client)
                self._read_the_rest(client)
                self._look_up(client)
            self._stop()
        finally:
            self._store.stop()
        return self._verdict(time.perf_counter() - begun)

    # -- the steps --------------------------------------------------------------------------------------------------

    def _start(self) -> None:
        size, sources = self._material.size, self._material.sources
        count = len(self._ledger.entries)
        self._teller.step(
            "Input",
            f"{', '.join(sources)}: {count:,} messages with {show_bytes(size)} of bodies, each with a key and a tag.",
            sources=sources,
            messages=count,
            bytes=size,
        )
        self._store.start()
        disk, memory = bytes_on_disk(self._directory), self._store.memory()
        state = "a new store" if self._is_new else "the store of an earlier demo goes on"
        self._teller.step(
            "Start",
            f"{state} in {self._directory}, at {self._store.address}, after {show_seconds(self._store.start_seconds)}: "
            f"{show_bytes(disk)} of disk, {show_bytes(memory.resident)} of memory.",
            directory=str(self._directory),
            address=self._store.address,
            seconds=self._store.start_seconds,
            is_new=self._is_new,
            disk_bytes=disk,
            memory_bytes=memory.resident,
        )
        if self._is_new and disk >= DISK_MAX:
            self._proof.losses.append(f"a new store takes {show_bytes(disk)} of disk, not under {show_bytes(DISK_MAX)}")
        if self._is_new and memory.resident >= MEMORY_MAX:
            self._proof.losses.append(
                f"a new store takes {show_bytes(memory.resident)} of memory, not under {show_bytes(MEMORY_MAX)}"
            )

    def _send_a_part(self, client: "StoreClient") -> None:
        for group in (self._everything, self._filtered):
            group.begin_at_the_end(client)
        producer, entries = Producer(client, self._ledger), self._ledger.entries
        begun = time.perf_counter()
        producer.one_by_one(entries[:SINGLES])
        singles = time.perf_counter() - begun
        producer.in_batches(entries[SINGLES : SINGLES + BATCHED])
        self._teller.step(
            "Send",
            f"{SINGLES} messages one by one ({show_seconds(singles / SINGLES)} each), {BATCHED} in batches; "
            f"all have receipts.",
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

    def _kill_while_sending(self, client: "StoreClient") -> None:
        import grpc

        producer, entries = Producer(client, self._ledger), self._ledger.open
        enough = len(entries) // 2

        def kill_in_the_middle(receipts: int) -> None:
            if receipts >= enough:
                self._store.kill()

        try:
            producer.in_a_stream(entries, kill_in_the_middle)
        except grpc.RpcError:
            pass
        else:
            raise CommandFailed("the store was to be killed while it took messages, and took all of them")
        waiting = producer.handed_over - (len(entries) - len(self._ledger.open))
        self._teller.step(
            "Kill",
            f"while a stream was sending, the store was killed with SIGKILL: {len(self._ledger.places):,} messages are "
            f"acknowledged, {waiting:,} were on their way without a receipt.",
            acknowledged=len(self._ledger.places),
            without_receipt=waiting,
        )
        self._in_flight = entries[: producer.handed_over]

    def _start_again(self) -> None:
        self._store.start()
        recovery = self._store.serving["recovery"]
        cut = f", {show_bytes(recovery['cut_bytes'])} of a torn tail cut off" if recovery["cut_bytes"] else ""
        self._teller.step(
            "Start again",
            f"serving after {show_seconds(self._store.start_seconds)}, of which recovery took "
            f"{show_seconds(recovery['seconds'])} ({recovery['records']:,} records read and checked{cut}).",
            seconds=self._store.start_seconds,
            recovery=recovery,
        )

    def _send_the_rest(self, client: "StoreClient") -> None:
        producer = Producer(client, self._ledger)
        unsure = [entry for entry in self._in_flight if entry.unique_key not in self._ledger.places]
        self._found_stored = producer.already_stored(unsure)
        rest = self._ledger.open
        begun = time.perf_counter()
        producer.in_a_stream(rest)
        seconds = time.perf_counter() - begun
        self._teller.step(
            "Send on",
            f"of the {len(unsure):,} without a receipt the store knows {self._found_stored:,} (asked by unique key); "
            f"the others and the rest, {len(rest):,} messages, go as a stream in {show_seconds(seconds)} "
            f"({len(rest) / seconds:,.0f} a second).",
            without_receipt=len(unsure),
            found_stored=self._found_stored,
            sent=len(rest),
            seconds=seconds,
        )

    def _read_the_rest(self, client: "StoreClient") -> None:
        begun = time.perf_counter()
        everything, filtered = self._everything.catch_up(client), self._filtered.catch_up(client)
        while (
            len(self._everything.records) < len(self._ledger.places) and time.perf_counter() - begun < _SETTLE_SECONDS
        ):
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

    def _look_up(self, client: "StoreClient") -> None:
        chosen = random.Random(3).sample(self._ledger.acknowledged, LOOKUPS)
        begun = time.perf_counter()
        good = self._proof.of_lookups(client, chosen)
        seconds = (time.perf_counter() - begun) / LOOKUPS
        example = chosen[0]
        place = self._ledger.places[example.unique_key]
        self._teller.step(
            "Look up",
            f"{good} of {LOOKUPS} messages, from before and after the kill, found by key and by id with the same "
            f"bytes, {show_seconds(seconds)} each. One is {example.item.key}, id {place.message_id}.",
            looked_up=LOOKUPS,
            found=good,
            seconds_each=seconds,
        )

    def _stop(self) -> None:
        memory = self._store.memory()
        code = self._store.stop()
        if code != 0:
            self._proof.losses.append(f"the store did not stop cleanly: exit code {code}")
        disk = bytes_on_disk(self._directory)
        files = sorted(path for path in self._directory.rglob("*") if path.is_file())
        kinds = ("commitlog", "consumequeue", "index")
        counts = ", ".join(f"{sum(kind in path.parts for path in files)} {kind}" for kind in kinds)
        self._teller.step(
            "Stop",
            f"the store had {show_bytes(memory.own)} of memory of its own at the end, "
            f"{show_bytes(memory.resident)} with the pages of its files. "
            f"A clean stop leaves {len(files)} files ({counts}), {show_bytes(disk)} of disk.",
            files=len(files),
            disk_bytes=disk,
            memory_bytes=memory.resident,
            own_memory_bytes=memory.own,
        )

    def _verdict(self, seconds: float) -> bool:
        acknowledged = len(self._ledger.places)
        missing = len(self._ledger.entries) - acknowledged
        losses = list(self._proof.losses)
        if missing:
            losses.append(f"{missing:,} messages were never acknowledged")
        told = f"{acknowledged:,} messages were acknowledged, and all of them are there, byte for byte."
        self._teller.verdict(not losses, told, losses, seconds=seconds, acknowledged=acknowledged)
        return not losses
