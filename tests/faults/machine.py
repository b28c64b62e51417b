"""A store against a model: Hypothesis sends, flushes, closes, kills, cuts the power, deletes and damages at will.

Power cuts here leave any mixture of old and new pages (power_disk.py), which the shutdown of a file system does not.
Unsynced messages may go; everything else must be as it was. Damage is excused for the records that were hit, and for
nothing else.

    python -m tests.faults.machine --seed 7 --examples 1000
"""

import argparse
import asyncio
import logging
import random
import shutil
import sys
import tempfile
import zlib
from collections.abc import Awaitable
from pathlib import Path
from typing import TypeVar

from hypothesis import HealthCheck, note, settings
from hypothesis import seed as drawn_from
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test

from tandemmq.store.log.message_store import MessageStore
from tests.faults.checker import Ack, Audit, Checker, LogRecord, Queue
from tests.faults.compiled_sends import CompiledSends
from tests.faults.harness import (
    PATIENCE_MS,
    QUEUES,
    audit,
    batch,
    body_of,
    message,
    small_config,
    value_parts,
    within,
)
from tests.faults.power_disk import PowerDisk
from tests.quiet import wait_for_files_ahead

Result = TypeVar("Result")
FOREVER_MS = 1 << 40
HOUR_MS = 3_600_000
DERIVED = ["consumequeue", "index", "checkpoint", "tandem.manifest", "tandem.damage"]


def checked(record: LogRecord, at: int) -> bool:
    """Whether a changed byte at log offset ``at`` would be noticed in this record (or lies outside of it).

    RocketMQ's checksum covers the body only: a flipped bit in a queue id makes a whole record of another queue.
    """
    inside = at - record.physical
    return (
        not 0 <= inside < record.size
        or inside < 12  # size, magic, checksum
        or 28 <= inside < 36  # physical offset
        or 84 <= inside < 88 + len(body_of(record.value))  # body length, body
    )


class HandClock:
    """A clock that is set by hand."""

    def __init__(self) -> None:
        self.now = 1_750_000_000_000

    def now_ms(self) -> int:
        self.now += 1
        return self.now


class StoreMachine(RuleBasedStateMachine):
    """The store and what is known about it."""

    @initialize(sync=st.booleans())
    def begin(self, sync: bool) -> None:
        shared = Path("/dev/shm")
        self.scratch = Path(tempfile.mkdtemp(prefix="tandem-machine-", dir=shared if shared.is_dir() else None))
        self.runner = asyncio.Runner()
        self.clock = HandClock()
        self.checker = Checker()
        self.pending: list[tuple[Ack, int]] = []
        self.life = self.number = self.boots = 0
        self.sync = sync
        self.damaged = self.numbers_in_manifest_only = False
        self.root = self.scratch / "0"
        self.root.mkdir()
        self.disk = PowerDisk(self.root)
        self.open()

    def run(self, work: Awaitable[Result]) -> Result:
        async def whole() -> Result:
            return await within(work)

        return self.runner.run(whole())

    # -- opening and closing ------------------------------------------------------------------------------------------

    def open(self) -> None:
        self.life += 1
        self.number = 0
        self.checker.begin(self.life)
        config = small_config(
            self.root,
            sync=self.sync,
            file_reserved_time=1,
            flush_interval_commit_log=FOREVER_MS,
            flush_interval_consume_queue=FOREVER_MS,
            clean_resource_interval=FOREVER_MS,
            sync_flush_timeout=PATIENCE_MS,
        )

        async def opened() -> MessageStore:
            store = MessageStore.open(config, disk=self.disk, clock=self.clock, boot=bytes([1 + self.boots % 255]) * 16)
            store.start()
            return store

        self.store = self.run(opened())
        self.compiled = CompiledSends(self.store)

    def close(self) -> None:
        self.run(self.store.close())
        self.disk.forget()

    def quiet(self) -> None:
        """Wait for the thread that makes files ahead: a copy of the directory must be of one moment."""
        wait_for_files_ahead(self.store)

    def copy(self) -> Path:
        """A copy of the directory as a killed process would leave it."""
        self.quiet()
        fresh = self.scratch / f"{self.life}"
        while True:
            try:
                shutil.copytree(self.root, fresh)
            except (shutil.Error, FileNotFoundError):  # a rebuild's thread has just renamed something
                shutil.rmtree(fresh)
            else:
                return fresh

    def move_to(self, fresh: Path) -> None:
        """Go on with another directory, as a crash has left it."""
        old = self.root
        self.close()
        self.root, self.disk = fresh, PowerDisk(fresh)
        shutil.rmtree(old)

    def look(self) -> Audit:
        """Compare everything; afterwards all that was sent is durable and acknowledged."""
        found = self.run(audit(self.store))
        self.acknowledge(self.store.commit_log.max_offset)
        self.checker.audit(found)
        assert not self.checker.problems, self.checker.problems
        return found

    def acknowledge(self, end: int) -> None:
        for ack, ack_end in self.pending:
            if ack_end <= end:
                self.checker.ack(ack)
        self.pending = [(ack, ack_end) for ack, ack_end in self.pending if ack_end > end]

    # -- rules: sending -----------------------------------------------------------------------------------------------

    def values(self, count: int) -> list[str]:
        first, self.number = self.number, self.number + count
        return [f"c{self.life}-p0-{at}" for at in range(first, first + count)]

    def sent(self, value: str, queue: Queue, offset: int, physical: int, size: int, end: int) -> None:
        data = self.store.read_record(physical, size)
        assert data is not None
        self.pending.append((Ack(value, *value_parts(value), queue, offset, physical, size, zlib.crc32(data)), end))

    @rule(queues=st.lists(st.sampled_from(QUEUES), min_size=1, max_size=40))
    def append(self, queues: list[Queue]) -> None:
        async def send() -> None:
            for queue, value in zip(queues, self.values(len(queues)), strict=True):
                one = self.store.append(message(queue, value))
                self.sent(value, queue, one.queue_offset, one.physical_offset, one.size, one.end_offset)

        self.ready()
        self.run(send())

    @rule(queues=st.lists(st.sampled_from(QUEUES), min_size=1, max_size=40))
    def append_compiled(self, queues: list[Queue]) -> None:
        async def send() -> None:
            for queue, value in zip(queues, self.values(len(queues)), strict=True):
                one = self.compiled.append(queue, value)
                self.sent(value, queue, one.queue_offset, one.physical_offset, one.size, one.end_offset)

        self.ready()
        self.run(send())

    @rule(queues=st.lists(st.sampled_from(QUEUES), min_size=1, max_size=60))
    def append_messages(self, queues: list[Queue]) -> None:
        async def send() -> None:
            values = self.values(len(queues))
            placed = self.store.append_messages([message(*pair) for pair in zip(queues, values, strict=True)])
            for queue, value, one in zip(queues, values, placed, strict=True):
                self.sent(value, queue, one.queue_offset, one.physical_offset, one.size, one.end_offset)

        self.ready()
        self.run(send())

    @rule(queue=st.sampled_from(QUEUES), count=st.integers(1, 60))
    def append_batch(self, queue: Queue, count: int) -> None:
        async def send() -> None:
            values = self.values(count)
            done = self.store.append_batch(batch(queue, values))
            ends = [*done.physical_offsets[1:], done.end_offset]
            for at, value in enumerate(values):
                begin = done.physical_offsets[at]
                self.sent(value, queue, done.first_queue_offset + at, begin, ends[at] - begin, done.end_offset)

        self.ready()
        self.run(send())

    def ready(self) -> None:
        """After a deletion the next offsets are known only when the rebuild has seen the log."""
        self.run(self.store.rebuilt())

    # -- rules: time passes -------------------------------------------------------------------------------------------

    @rule()
    def flush(self) -> None:
        end = self.store.commit_log.max_offset
        assert self.run(self.store.wait_flushed(end))
        self.acknowledge(end)

    @rule()
    def checkpoint(self) -> None:
        self.run(self.store._checkpointer.take())

    @rule()
    def turn(self) -> None:
        """Let the loop dispatch."""
        self.run(asyncio.sleep(0.001))

    @rule(hours=st.floats(-2, 2))
    def retention(self, hours: float) -> None:
        self.clock.now += int(hours * HOUR_MS)

        async def clean() -> None:
            await self.store._retention.run_once()

        self.run(clean())

    @rule()
    def audit(self) -> None:
        self.look()

    # -- rules: ends --------------------------------------------------------------------------------------------------

    @rule()
    def close_and_open(self) -> None:
        self.close()
        self.acknowledge(FOREVER_MS)
        self.disk = PowerDisk(self.root)
        self.open()
        self.look()

    @rule()
    def kill(self) -> None:
        self.move_to(self.copy())
        # The page cache outlives a process: what was sent is there.
        self.open()
        self.look()

    @rule(chance=st.integers(0, 1 << 32), look=st.booleans())
    def cut_the_power(self, chance: int, look: bool) -> None:
        self.quiet()
        self.boots += 1
        fresh = self.scratch / f"{self.life}"
        self.disk.image(fresh, random.Random(chance))
        self.move_to(fresh)
        if not self.sync:  # visible and acknowledged, yet not durable: that is what ASYNC_FLUSH means
            self.checker = Checker()
        self.pending.clear()
        self.open()
        if look:
            self.look()

    @rule(what=st.sampled_from(DERIVED), pick=st.integers(0, 1000), clean=st.booleans(), kill=st.booleans())
    def delete_derived(self, what: str, pick: int, clean: bool, kill: bool) -> None:
        """Take away a derived file or directory, or a part of it; maybe kill the rebuild half-way.

        One fault at a time: where a record is damaged and its queue was made anew, the number of that record stands in
        the manifest only, and is gone with it.
        """
        if self.numbers_in_manifest_only and what in ("tandem.manifest", "checkpoint"):
            return
        self.numbers_in_manifest_only |= self.damaged and what == "consumequeue"
        if clean:
            self.close()
            self.acknowledge(FOREVER_MS)
        else:
            self.move_to(self.copy())
        path = self.root / what
        inside = sorted(path.rglob("*"))
        victim = inside[pick % len(inside)] if inside and pick % 3 else path
        note(f"without {victim.relative_to(self.root)}")
        if victim.is_dir():
            shutil.rmtree(victim)
        else:
            victim.unlink(missing_ok=True)
        self.disk = PowerDisk(self.root)
        self.open()
        if kill:
            self.run(asyncio.sleep(0))
            self.kill()
        else:
            self.look()
        self.checkpoint()

    @rule(place=st.floats(0, 1), bit=st.integers(0, 7))
    def damage_the_log(self, place: float, bit: int) -> None:
        """Flip a bit anywhere in the log: the record that is hit may go, its neighbours may not."""
        before = self.look()
        if not before.records or self.numbers_in_manifest_only:
            return
        at = before.log_min + int(place * (before.log_max - before.log_min - 1))
        if not all(checked(record, at) for record in before.records):
            return
        self.damaged = True
        self.close()
        file_size = self.store.config.mapped_file_size_commit_log
        path = self.root / "commitlog" / f"{at - at % file_size:020d}"
        data = bytearray(path.read_bytes())
        data[at % file_size] ^= 1 << bit
        path.write_bytes(data)
        hit = {record.value for record in before.records if record.physical <= at < record.physical + record.size}
        note(f"bit {bit} at log offset {at}, in {hit}")
        # Nobody looks behind a current manifest: without it the whole log is read again.
        (self.root / "tandem.manifest").unlink(missing_ok=True)
        (self.root / "checkpoint").unlink(missing_ok=True)
        self.disk = PowerDisk(self.root)
        survivors = {value: ack for value, ack in self.checker.acks.items() if value not in hit}
        self.checker = Checker()
        self.checker.acks = survivors
        self.open()
        self.look()
        self.checkpoint()

    # -- always -------------------------------------------------------------------------------------------------------

    @invariant()
    def bounds_never_go_back(self) -> None:
        if not hasattr(self, "store"):
            return
        log = self.store.commit_log
        end = self.store.confirm_offset if self.sync else 0

        async def bounds() -> dict[Queue, tuple[int, int]]:  # a queue that is first opened here may have to be rebuilt
            return {
                (queue.topic, queue.queue_id): (queue.min_offset, queue.max_offset if self.sync else 0)
                for queue in self.store.queues()
                if not queue.rebuilding
            }

        queues = self.run(bounds())
        self.checker.offsets(log.min_offset, max(end, self.checker._log_max if not self.sync else 0), {
            name: (first, max(last, self.checker._bounds.get(name, (0, 0))[1] if not self.sync else 0))
            for name, (first, last) in queues.items()
        })  # fmt: skip
        assert not self.checker.problems, self.checker.problems

    def teardown(self) -> None:
        if not hasattr(self, "store"):
            return
        try:
            self.close()
            self.runner.close()
        finally:
            shutil.rmtree(self.scratch)


def run_examples(number: int, seed: int) -> None:
    """Run so many examples of what may happen to a store; the same ones for the same seed.

    Raises what the smallest failing one raised, with its steps in a note.
    """
    limits = settings(
        max_examples=number,
        stateful_step_count=20,
        deadline=None,
        suppress_health_check=list(HealthCheck),
        print_blob=True,
        database=None,
    )
    run_state_machine_as_test(drawn_from(seed)(StoreMachine), settings=limits)


def main() -> int:
    """Run a batch; what it found goes to stderr, as Hypothesis tells it."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--examples", type=int, required=True)
    arguments = parser.parse_args()
    logging.disable(logging.CRITICAL)  # recovery has much to say of what is done to it here
    run_examples(arguments.examples, arguments.seed)
    return 0


if __name__ == "__main__":
    sys.exit(main())
