"""The demo of one store, step by step. Each step does one thing, says it, and keeps the numbers for --json."""

import time
from pathlib import Path
from typing import TYPE_CHECKING

from tandemmq.cli.demo.child import StoreProcess, bytes_on_disk
from tandemmq.cli.demo.ledger import DemoEntry
from tandemmq.cli.demo.producer import DemoProducer
from tandemmq.cli.demo.steps import MESSAGES, Steps, is_new
from tandemmq.cli.demo.teller import Teller
from tandemmq.cli.talk.failures import CommandFailed
from tandemmq.cli.talk.moments import show_bytes, show_seconds

if TYPE_CHECKING:
    from tandemmq.client import StoreClient


class Demo(Steps):
    """One run over one store directory."""

    def __init__(self, directory: Path, teller: Teller, messages: int = MESSAGES) -> None:
        super().__init__(teller, messages)
        self._directory = directory
        self._is_new = is_new(directory)
        self._store = StoreProcess(directory)
        self._found_stored = 0
        self._in_flight: list[DemoEntry] = []

    def run(self) -> bool:
        """Tell the whole story; True if nothing was lost and all promises were kept."""
        from tandemmq.client import StoreClient

        begun = time.perf_counter()
        try:
            self._tell_input()
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
        if self._is_new:
            self._check_size("a new store", disk, memory.resident)

    def _kill_while_sending(self, client: "StoreClient") -> None:
        import grpc

        producer, entries = DemoProducer(client, self._ledger), self._ledger.open
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
        producer = DemoProducer(client, self._ledger)
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
