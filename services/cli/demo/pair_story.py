"""The demo of two nodes, step by step: each of their processes is killed while messages are sent."""

import time
from pathlib import Path
from typing import TYPE_CHECKING

from tandemmq.cli.demo.child import bytes_on_disk, memory_of
from tandemmq.cli.demo.ledger import DemoEntry
from tandemmq.cli.demo.pair import MASTER, NODES, SERVICES, SLAVE, PairProcess, Which
from tandemmq.cli.demo.producer import DemoProducer
from tandemmq.cli.demo.readers import ConsumerGroup
from tandemmq.cli.demo.steps import MESSAGES, SETTLE_SECONDS, Steps, is_new
from tandemmq.cli.demo.teller import Teller
from tandemmq.cli.talk.moments import show_bytes, show_seconds
from tandemmq.node.plan import node_directories

if TYPE_CHECKING:
    from tandemmq.client import StoreClient

KILLED: tuple[tuple[str, tuple[Which, ...]], ...] = (
    ("slave's store", ((SLAVE, "store"),)),
    ("slave's replicator", ((SLAVE, "replicator"),)),
    ("master's replicator", ((MASTER, "replicator"),)),
    ("two metasyncs", ((MASTER, "metasync"), (SLAVE, "metasync"))),
    ("master's store", ((MASTER, "store"),)),
)
"""In this order, in words and by name."""

PART = 600
"""Messages of the stream during which something is killed."""

IN_FLIGHT = 2
"""Requests of that stream that may be without an answer: few, so that most are sent after the kill."""


class PairDemo(Steps):
    """One run over the directories of two nodes."""

    def __init__(self, directory: Path, teller: Teller, messages: int = MESSAGES) -> None:
        super().__init__(teller, messages)
        self._directory = directory
        self._roots = dict(zip(NODES, node_directories(directory), strict=True))
        self._is_new = all(is_new(root) for root in self._roots.values())
        self._pair = PairProcess(directory)
        self._at_the_slave: ConsumerGroup | None = None

    def run(self) -> bool:
        """Tell the whole story; True if nothing was lost and all promises were kept."""
        begun = time.perf_counter()
        try:
            self._tell_input()
            self._start()
            with self._client(MASTER) as client:
                self._send_a_part(client, " that say: both nodes have it")
                self._at_the_slave = self._everything.copy("demo-at-the-slave")
                self._read_a_part(client)
            for words, victims in KILLED:
                self._kill(words, victims)
            with self._client(MASTER) as client:
                self._send_the_rest(client)
                self._read_the_rest(client)
            with self._client(SLAVE) as client:
                self._read_from_the_slave(client)
                self._look_up(client, " at the slave")
            self._stop()
        finally:
            self._pair.stop()
        self._compare()
        return self._verdict(time.perf_counter() - begun, "on both nodes, byte for byte")

    def _client(self, node: str) -> "StoreClient":
        from tandemmq.client import StoreClient

        return StoreClient(self._pair.address(node, "store"))

    # -- the steps --------------------------------------------------------------------------------------------------

    def _start(self) -> None:
        self._pair.start()
        self._pair.wait_until_in_sync()
        disk = self._disk()
        memory = {
            (node, service): memory_of(self._pair.serving(node, service)["pid"]).resident
            for node in NODES
            for service in SERVICES
        }
        state = "two new nodes" if self._is_new else "the nodes of an earlier demo go on"
        store, sidecars = memory[MASTER, "store"], sum(memory[MASTER, one] for one in ("replicator", "metasync"))
        addresses = [self._pair.address(node, "store") for node in NODES]
        self._teller.step(
            "Start",
            f"{state} in {self._directory}, six processes of `tandem up --slave --processes`, after "
            f"{show_seconds(self._pair.start_seconds)}: a master at {addresses[0]}, a slave at {addresses[1]}. Each "
            f"takes {show_bytes(disk[MASTER])} of disk, its store {show_bytes(store)} of memory, replicator and "
            f"metasync {show_bytes(sidecars)}.",
            directory=str(self._directory),
            address=addresses[0],
            slave_address=addresses[1],
            seconds=self._pair.start_seconds,
            is_new=self._is_new,
            disk_bytes=disk[MASTER],
            memory_bytes=store,
            sidecar_memory_bytes=sidecars,
        )
        if self._is_new:
            for node in NODES:
                self._check_size(f"the new {node}", disk[node], memory[node, "store"])

    def _kill(self, words: str, victims: tuple[Which, ...]) -> None:
        """Kill while a stream sends; see what the receipts say, and what the nodes say when they are back."""
        import grpc

        entries = self._ledger.open[:PART]
        lives: dict[Which, int] = {}
        killed_at = 0.0

        def kill_in_the_middle(receipts: int) -> None:
            nonlocal killed_at
            if receipts >= len(entries) // 3 and not lives:
                lives.update((victim, self._pair.kill(*victim)) for victim in victims)
                killed_at = time.perf_counter()

        with self._client(MASTER) as client:
            producer = DemoProducer(client, self._ledger)
            try:
                producer.in_a_stream(entries, kill_in_the_middle, IN_FLIGHT)
            except grpc.RpcError:
                if (MASTER, "store") not in victims:
                    self._proof.losses.append(f"the stream broke when the {words} was killed")
        for victim, before in lives.items():
            self._pair.wait_until_back(*victim, before)
        back = time.perf_counter() - killed_at
        self._pair.wait_until_in_sync()
        caught_up = time.perf_counter() - killed_at
        sent = entries[: producer.handed_over]
        acknowledged = sum(entry.unique_key in self._ledger.places for entry in sent)
        late, lost = self._settle(sent, producer)
        self._teller.step(
            "Kill",
            f"the {words}, with SIGKILL, while a stream was sending {len(entries)} messages: {acknowledged} were "
            f"acknowledged{_as_told(producer, len(sent) - acknowledged)}; the longest wait was "
            f"{show_seconds(producer.longest_wait)}. Back after {show_seconds(back)}, both logs equally long after "
            f"{show_seconds(caught_up)}{_in_words(late, lost)}.",
            killed=[list(victim) for victim in victims],
            sent=len(sent),
            acknowledged=acknowledged,
            statuses=dict(producer.statuses),
            longest_wait_seconds=producer.longest_wait,
            found_later=late,
            not_stored=lost,
            back_after_seconds=back,
            in_sync_after_seconds=caught_up,
        )

    def _settle(self, entries: list[DemoEntry], producer: DemoProducer) -> tuple[int, int]:
        """Messages without a good receipt that the slave has count as acknowledged; gives how many do, and do not."""
        unsure = [entry for entry in entries if entry.unique_key not in self._ledger.places]
        with self._client(MASTER) as master, self._client(SLAVE) as slave:
            asking = DemoProducer(master, self._ledger)
            for entry in unsure:
                place = producer.weak.get(entry.unique_key) or asking.find(entry)
                if place is not None and slave.view(place.message_id).unique_key == entry.unique_key:
                    self._ledger.acknowledge(entry.unique_key, place)
        late = sum(entry.unique_key in self._ledger.places for entry in unsure)
        return late, len(unsure) - late

    def _send_the_rest(self, client: "StoreClient") -> None:
        rest = self._ledger.open
        begun = time.perf_counter()
        DemoProducer(client, self._ledger).in_a_stream(rest)
        seconds = time.perf_counter() - begun
        self._teller.step(
            "Send on",
            f"the rest, {len(rest):,} messages, as a stream in {show_seconds(seconds)} ({len(rest) / seconds:,.0f} a "
            f"second), each of them on both nodes before its receipt.",
            sent=len(rest),
            seconds=seconds,
        )

    def _read_from_the_slave(self, client: "StoreClient") -> None:
        group = self._at_the_slave
        assert group is not None
        until = time.monotonic() + SETTLE_SECONDS
        count = group.catch_up(client)
        while count < len(self._everything.records) and time.monotonic() < until:
            time.sleep(0.05)
            count += group.catch_up(client)
        same = self._proof.of_everything(group.records)
        self._teller.step(
            "Read there",
            f"a third group reads the slave from where the demo began: {count:,} messages, among them {same:,} of the "
            f"{len(self._ledger.places):,} acknowledged ones, in the same places, with the same bytes.",
            read=count,
            same=same,
            acknowledged=len(self._ledger.places),
        )

    def _stop(self) -> None:
        end = self._pair.wait_until_in_sync()
        code = self._pair.stop()
        if code != 0:
            self._proof.losses.append(f"the nodes did not stop cleanly: exit code {code}")
        disk = self._disk()
        self._teller.step(
            "Stop",
            f"both logs end at {end:,}. All six processes stopped in order; the nodes take "
            f"{show_bytes(disk[MASTER])} and {show_bytes(disk[SLAVE])} of disk.",
            log_end=end,
            disk_bytes=disk,
        )

    def _disk(self) -> dict[str, int]:
        """What each node takes; the second may lie in the first one's directory."""
        first, second = self._roots.values()
        return dict(zip(NODES, (bytes_on_disk(first, but=second), bytes_on_disk(second)), strict=True))

    def _compare(self) -> None:
        """The proof on the files themselves."""
        counts = {
            kind: self._proof.of_files(self._roots[MASTER] / kind, self._roots[SLAVE] / kind)
            for kind in ("commitlog", "consumequeue")
        }
        size = sum(path.stat().st_size for path in (self._roots[MASTER] / "commitlog").iterdir())
        self._teller.step(
            "Compare",
            f"the commit logs of both nodes, byte by byte: {counts['commitlog']} files, {show_bytes(size)}; and "
            f"{counts['consumequeue']} files of consume queues, which each node made by itself. "
            + ("Something differs." if self._proof.losses else "They are equal."),
            log_files=counts["commitlog"],
            queue_files=counts["consumequeue"],
            equal=not self._proof.losses,
        )


def _as_told(producer: DemoProducer, without: int) -> str:
    """What the receipts of the others said."""
    told = ", ".join(f"{count} {status}" for status, count in sorted(producer.statuses.items()))
    silent = without - sum(producer.statuses.values())
    parts = ([f"told {told}"] if told else []) + ([f"{silent} were on their way without a receipt"] if silent else [])
    return f", {', '.join(parts)}" if parts else ""


def _in_words(late: int, lost: int) -> str:
    parts = ([f"{late} of those are on both nodes"] if late else []) + ([f"{lost} go out again"] if lost else [])
    return f"; {', '.join(parts)}" if parts else ""
