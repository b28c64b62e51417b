"""Stores of which files are missing, in any combination: what may become of them, and a judge who says whether it did.

python -m tests.faults.missing --rounds 100 [--seed 7]      every combination, of a new store each round
"""

import asyncio
import itertools
import random
import shutil
import sys
import tempfile
import time
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path

from tandemmq.store.log.config import StoreConfig
from tandemmq.store.log.edges.disk import LocalDisk
from tandemmq.store.log.errors import LogFilesMissing
from tandemmq.store.log.message_store import MessageStore
from tandemmq.store.log.recovery.accepted_loss import accept_loss
from tests.faults.checker import Queue
from tests.faults.harness import QUEUES, intact, message, settle, small_config, value_of, within

LOG_FILE = 16 * 1024
MESSAGES = 260
BEHIND = 15
"""So many of them come after the last checkpoint of a store that is killed."""
ONCE_EARLY, ONCE_LATE = ("once", 0), ("once", 1)
"""Queues of one message each: in the middle of the log, and in its last file."""

LOGS = ("first", "middle", "last", "log", "older")
"""Log files, the directory with all of them, and the last file replaced by an older copy of itself."""
BESIDE = ("consumequeue", "index", "checkpoint", "tandem.manifest", "tandem.end")
PARTS = (*LOGS, *BESIDE)


def config_of(root: Path) -> StoreConfig:
    return small_config(
        root,
        mapped_file_size_commit_log=LOG_FILE,
        file_reserved_time=0,
        delete_file_batch_max=1,
        clean_resource_interval=3_600_000,
        flush_consume_queue_thorough_interval=3_600_000,
        prefault_bytes=0,
    )


@dataclass(frozen=True, slots=True)
class Acked:
    queue: Queue
    offset: int
    physical: int
    value: str


@dataclass(frozen=True, slots=True)
class Original:
    """A whole store of several files, the first of which has expired."""

    root: Path
    clean: bool
    acked: tuple[Acked, ...]
    ends: dict[Queue, int]

    @property
    def used(self) -> int:
        """A log offset after the last record's begin."""
        return self.acked[-1].physical + 1

    @property
    def older_end(self) -> int:
        """Where an older copy of the last file ends."""
        last = [one.physical for one in self.acked if one.physical >= self.used - self.used % LOG_FILE]
        return last[len(last) * 3 // 4]

    def is_left(self, one: Acked, gone: Collection[str], left: Collection[str]) -> bool:
        """Whether the message is in the log files that are ``left``."""
        at = one.physical
        return f"{at - at % LOG_FILE:020d}" in left and not ("older" in gone and at >= self.older_end)


async def build(root: Path, seed: int, *, clean: bool) -> Original:
    """Fill a store and stop it; or, where it is not to be ``clean``, leave what a killed one leaves."""
    rng, live = random.Random(seed), root.with_name(root.name + ".live")
    store = MessageStore.open(config_of(live))
    store.start()
    acked, ends = [], dict.fromkeys([*QUEUES, ONCE_EARLY, ONCE_LATE], 0)
    for number in range(MESSAGES):
        if number == MESSAGES - BEHIND:
            await settle(store)
            assert await store._retention.run_once() == 1
        queue = {MESSAGES // 2: ONCE_EARLY, MESSAGES - 1: ONCE_LATE}.get(number) or rng.choice(QUEUES)
        value = f"m-{number}"
        appended = store.append(message(queue, value))
        assert await within(store.wait_flushed(appended.end_offset))
        acked.append(Acked(queue, appended.queue_offset, appended.physical_offset, value))
        ends[queue] += 1
    await settle(store)
    begin = store.commit_log.min_offset
    if not clean:
        await settle(store)
        shutil.copytree(live, root, ignore=shutil.ignore_patterns("*.tmp"))  # they come and go meanwhile
    await store.close()
    if clean:
        live.rename(root)
    else:
        shutil.rmtree(live)
    return Original(root, clean, tuple(one for one in acked if one.physical >= begin), ends)


def remove(root: Path, parts: Collection[str], used: int) -> None:
    """Take ``parts`` away. ``used``: log offset after the last record; files that lie after it go with the last."""
    files = sorted((root / "commitlog").iterdir())
    written = [path for path in files if int(path.name) < used]
    ahead = [path for path in files if int(path.name) >= used]
    going = {"first": written[:1], "middle": written[2:3], "last": [*written[-1:], *ahead]}
    for part in parts:
        for path in going.get(part, ()):
            path.unlink(missing_ok=True)
    for name in parts:
        path = root / ("commitlog" if name == "log" else name)
        if path.is_dir():
            shutil.rmtree(path)
        elif name in BESIDE:
            path.unlink(missing_ok=True)  # a store that was stopped has no tandem.end


def replace_by_older(original: Original, root: Path) -> None:
    """Let the last file be one that was copied when most of what is in it was written."""
    at = original.older_end
    path = root / "commitlog" / f"{at - at % LOG_FILE:020d}"
    path.write_bytes(path.read_bytes()[: at % LOG_FILE].ljust(LOG_FILE, b"\0"))


def names(root: Path) -> list[str]:
    directory = root / "commitlog"
    return sorted(path.name for path in directory.iterdir()) if directory.is_dir() else ["no directory"]


def open_or_refuse(root: Path) -> tuple[MessageStore | None, str]:
    try:
        return MessageStore.open(config_of(root)), ""
    except LogFilesMissing as error:
        return None, error.message


async def try_without(original: Original, parts: Collection[str], root: Path) -> str:
    """Start a copy without ``parts``; what became of it, in a word. AssertionError where that is not as promised."""
    shutil.copytree(original.root, root)
    used = original.used
    remove(root, parts, used)
    if "older" in parts:
        replace_by_older(original, root)
    gone, before = set(parts), names(root)
    end_lost = bool(gone & {"last", "log", "older"})
    store, refusal = open_or_refuse(root)
    if store is None:
        assert end_lost, f"refused without need: {refusal}"
        assert names(root) == before, "the refused start has changed commitlog/"
        if "tandem.manifest" not in gone and original.clean:
            assert f"{used - used % LOG_FILE:020d}" in refusal, refusal
        assert open_or_refuse(root) == (None, refusal), "the second start knows less than the first"
        loss = accept_loss(config_of(root), LocalDisk())
        assert loss.numbers_known == numbers_known(original, gone)
        await judge(original, gone, before, MessageStore.open(config_of(root)), accepted=True)
        return "refused"
    if end_lost:
        assert not must_be_refused(original.clean, gone), "the end of the log is gone, and the store started"
    await judge(original, gone, before, store, accepted=False)
    return "served"


def must_be_refused(clean: bool, gone: Collection[str]) -> bool:
    """Whether something is left that knows of the lost end. After a kill that is the file before it, which is full.

    Of a file that is there and older than the others the manifest tells after a clean stop, after a kill ``tandem.end``
    (the manifest where it is newer than the copy). After a clean stop without our manifest, files of which units are
    left may as well be those that RocketMQ removes when it cuts a log: that is only told.
    """
    left = set(BESIDE) - set(gone) - ({"tandem.end"} if clean else set())
    if "log" in gone:
        return bool(left)
    if "tandem.end" in left:
        return True
    if "older" in gone:
        return clean and "tandem.manifest" in left
    return "tandem.manifest" in left or not clean


async def judge(
    original: Original, gone: Collection[str], left: Collection[str], store: MessageStore, *, accepted: bool
) -> None:
    """What is left is served, what is not is damage, and no number is given twice."""
    store.start()
    try:
        await settle(store)
        damage = store.damage
        nothing_known = "log" in gone and {"tandem.manifest", "consumequeue", "index"} <= set(gone)
        unknown = end_unknown(original, gone)
        for one in original.acked:
            queue = store.queue(*one.queue)
            unit = queue.unit(one.offset) if queue is not None else None
            record = intact(store.read_record(one.physical))
            if original.is_left(one, gone, left):
                assert record is not None, f"{one} is not served"
                assert value_of(record.body) == one.value
                assert unit is not None, one
                assert unit.physical_offset == one.physical, one
                assert queue is not None
                assert queue.min_offset <= one.offset < queue.max_offset
                assert any(
                    found == one.physical for found in store.query_index(one.queue[0], f"k{one.value}", 0, 1 << 62)
                ), f"{one} is not found by its key"
                continue
            assert record is None
            told = any(known.begin <= one.physical < known.end for known in damage) or store.recovery.notes
            first_untold = "first" in gone and "tandem.manifest" in gone and one.physical < int(min(left))
            assert told or first_untold or nothing_known or unknown, f"{one} is gone, and nobody says so"
        if (numbers_known(original, gone) and (accepted or not unknown)) or not set(LOGS) & set(gone):
            for name, end in original.ends.items():
                appended = store.append(message(name, "after"))
                assert appended.queue_offset >= end, f"{name} gave {appended.queue_offset} again, it was at {end}"
                assert await within(store.wait_flushed(appended.end_offset))
    finally:
        await store.close()


def numbers_known(original: Original, gone: Collection[str]) -> bool:
    """Whether the numbers of lost messages are still known: by their units, or by a manifest of the very end."""
    return "consumequeue" not in gone or (original.clean and "tandem.manifest" not in gone)


def end_unknown(original: Original, gone: Collection[str]) -> bool:
    """Whether a start cannot be sure that the end of the log is gone (see `must_be_refused`)."""
    if "older" in gone and not original.clean:
        return "tandem.end" in gone
    return bool({"last", "older"} & set(gone)) and "tandem.manifest" in gone


def combinations(most: int) -> Iterator[tuple[str, ...]]:
    """Every combination of up to ``most`` parts; the directory stands for all files in it."""
    for count in range(1, most + 1):
        for parts in itertools.combinations(PARTS, count):
            if ("log" not in parts or set(parts).isdisjoint(LOGS[:3])) and (
                "older" not in parts or set(parts).isdisjoint({"last", "log"})
            ):
                yield parts


async def one_round(directory: Path, seed: int, most: int, only: random.Random | None = None) -> dict[str, int]:
    """Try combinations on a clean and a killed store; how many there were of each outcome.

    ``only``: draws a twentieth of those of more than two parts.
    """
    told: dict[str, int] = {}
    for clean in (True, False):
        original = await build(directory / f"original-{clean}", seed, clean=clean)
        for parts in combinations(most):
            if only is not None and len(parts) > 2 and only.random() > 0.05:
                continue
            root = directory / "tried"
            try:
                outcome = await try_without(original, parts, root)
            except BaseException as error:
                error.add_note(f"without {', '.join(parts)}, of a {'clean' if clean else 'killed'} store, seed {seed}")
                raise
            told[outcome] = told.get(outcome, 0) + 1
            shutil.rmtree(root)
    return told


def soak(seed: int, minutes: float) -> int:
    """All combinations, of a new store each round, until the time is over; raises at the first broken promise."""
    deadline = time.monotonic() + minutes * 60
    while time.monotonic() < deadline:
        with tempfile.TemporaryDirectory() as directory:
            told = asyncio.run(one_round(Path(directory), seed, len(PARTS)))
        sys.stdout.write(f"files missing, seed {seed}: {told}\n")
        sys.stdout.flush()
        seed += 1
    return 0
