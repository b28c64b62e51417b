"""Damage to any byte of any file: served as it was, served with a word about it, or refused by name.

    python -m tests.faults.byte_damage --seed 7 --cases 10000      --first N: begin at case N, to replay one

Each case copies a directory, damages one file of a random kind, opens it, reads everything by pulls, keys and tables,
appends, closes, and opens it once more. What may never be: a difference that nobody was told of, a message or a number
that was never there, an error without a type or a name, a hang.

RocketMQ's checksum covers the body only. A record of the log whose other fields were hit may be read as they say now
(``limit``); so may JSON of RocketMQ's, and the access file and the signing secrets, which people write.
"""

import argparse
import asyncio
import json
import logging
import random
import shutil
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Awaitable, Callable, Container, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tandemmq.common.access.file import parse_access, read_text
from tandemmq.common.access.signing import read_secrets, signing_file
from tandemmq.common.errors import TandemError
from tandemmq.metasync.keeper import Keeper
from tandemmq.metasync.tables import TableKind
from tandemmq.store.audit_file import AuditFile
from tandemmq.store.broker.pull import Puller
from tandemmq.store.broker.pulled import Wanted
from tandemmq.store.broker.query import Finder
from tandemmq.store.broker.topics import LocalTopicTable
from tandemmq.store.broker.watched_topics import WatchedTopicTable
from tandemmq.store.delivery.members.groups import LocalGroupTable, WatchedGroupTable
from tandemmq.store.format.record import CorruptRecord, decode_record
from tandemmq.store.log.edges.disk import LocalDisk
from tandemmq.store.log.event import Event
from tandemmq.store.log.message_store import MessageStore
from tandemmq.store.log.observer import NullObserver
from tests.faults.damage_scenes import FIRST_MS, CountingClock, Scene, all_scenes, kinds_of, standings_of
from tests.faults.harness import PATIENCE, message, within
from tests.unit.log.staging_kit import NAME as STAGING

Queue = tuple[str, int]
CASES = 10_000
PAGE = 4096
LATER_MS = 10_000_000
_ALL_KEYS = 1 << 20
"""After so many bytes of log, some keys only are looked up."""


class Ears(NullObserver, logging.Handler):
    """All that is told while it lives: warnings in logs, and what the store observes."""

    def __init__(self, known: Container[str] = ()) -> None:
        """``known``: what is told of an undamaged directory too, and is not listened to."""
        logging.Handler.__init__(self, logging.WARNING)
        self.told: list[str] = []
        self._known = known

    def hear(self, text: str) -> None:
        if text not in self._known:
            self.told.append(text)

    def emit(self, record: logging.LogRecord) -> None:
        self.hear(record.getMessage())

    def damaged(self, kind: str, size: int) -> None:
        self.hear(f"damaged {kind}")

    def found(self, kind: str, count: int) -> None:
        self.hear(f"found {kind} {count}")

    def unusable(self, file: str) -> None:
        self.hear(f"unusable {file}")

    def failed(self, what: str) -> None:
        self.hear(f"failed {what}")

    def __enter__(self) -> "Ears":
        self._before = logging.getLogger().handlers[:]
        logging.getLogger().handlers[:] = [self]
        return self

    def __exit__(self, *_: object) -> None:
        logging.getLogger().handlers[:] = self._before


@dataclass
class View:
    """What a directory holds, as its readers see it."""

    bounds: dict[Queue, tuple[int, int]] = field(default_factory=dict)
    messages: dict[tuple[Queue, int], bytes] = field(default_factory=dict)
    rotten: set[tuple[Queue, int]] = field(default_factory=set)
    """What was served with a checksum that does not fit, which consumers see."""
    keys: set[tuple[int, str]] = field(default_factory=set)
    """(log offset, key) that the index finds."""
    appended: dict[Queue, int] = field(default_factory=dict)
    store_times: list[int] = field(default_factory=list)
    damage: list[tuple[int, int]] = field(default_factory=list)
    role: str = ""
    log_max: int = 0
    tables: dict[str, Any] = field(default_factory=dict)
    told: frozenset[str] = frozenset()


# -- reading everything -----------------------------------------------------------------------------------------------


async def view_of(scene: Scene, root: Path, ears: Ears, *, append: bool = True) -> View:
    """Open, read all, append to each queue, close. Raises what opening raises."""
    view = View()
    store = MessageStore.open(scene.config(root), clock=CountingClock(FIRST_MS + LATER_MS), observer=ears)
    store.start()
    try:
        await within(store.rebuilt())
        if scene.staged and (root / STAGING).is_dir():
            try:
                await within(store.adoption.adopt(STAGING))
            except TandemError as error:
                ears.told.append(str(error))
        await _read(store, view)
        view.damage = [(one.begin, one.end) for one in store.damage]
        view.role = f"{store.replica.mastership.role} {store.replica.epoch} {store.replica.group.group}"
        view.log_max = store.commit_log.max_offset
        if append and store.writable:
            for queue in sorted(view.bounds):
                one = store.append(message(queue, f"c9-p0-{len(view.appended)}"))
                view.appended[queue] = one.queue_offset
                view.store_times.append(one.store_timestamp)
            assert await within(store.wait_flushed(store.commit_log.max_offset)), store.why_not_writable
    finally:
        await within(store.close())
    return view


async def _read(store: MessageStore, view: View) -> None:
    puller, finder = Puller(store, EveryTopic()), Finder(store, 64)
    for queue in list(store.queues()):
        name = queue.topic, queue.queue_id
        view.bounds[name] = queue.min_offset, queue.max_offset
        offset = queue.min_offset
        while offset < queue.max_offset:
            pulled = await _pulled(puller, Wanted(*name, offset, 500, 1 << 22))
            assert pulled.next_offset > offset, f"a pull at {offset} of {name} does not go on"
            _take(name, pulled.records, view)
            offset = pulled.next_offset
    for (name, offset), data in view.messages.items():
        record = decode_record(data)
        if record.physical_offset > _ALL_KEYS and offset % 16:
            continue
        for key in record.keys[:1]:
            when = record.store_timestamp
            if data in finder.by_key(name[0], key, when, when, 64, unique=False):
                view.keys.add((record.physical_offset, key))


class EveryTopic:
    """Every topic may be read."""

    changed = Event()

    def get(self, name: str) -> None:
        return None

    def all(self) -> list[Any]:
        return []

    async def add(self, topics: Any) -> None:
        raise AssertionError


async def _pulled(puller: Puller, wanted: Wanted) -> Any:
    deadline = time.monotonic() + PATIENCE
    while True:
        try:
            return puller.pull(wanted)
        except TandemError:  # a queue that is put right: come again
            if time.monotonic() > deadline:
                raise
            await asyncio.sleep(0.002)


def _take(name: Queue, records: bytes, view: View) -> None:
    at = 0
    while at < len(records):
        size = int.from_bytes(records[at : at + 4], "big")
        data = bytes(records[at : at + size])
        number = int.from_bytes(data[20:28], "big")
        try:
            record = decode_record(data)
            assert (record.topic, record.queue_id) == name, f"{name} gives a message of {record.topic}"
            view.messages[name, record.queue_offset] = data
        except CorruptRecord:
            view.rotten.add((name, number))
        at += size


async def tables_of(root: Path, ears: Ears) -> dict[str, Any]:
    """What each table says; for one that is refused, the error's words."""
    disk, found = LocalDisk(), dict[str, Any]()

    def read(name: str, work: Callable[[], Any]) -> None:
        try:
            found[name] = work()
        except TandemError as error:
            found[name] = error
            ears.told.append(str(error))

    def topics(table: Any) -> Any:
        return {one.name: one.to_json() for one in table.all()}

    if (root / "config").is_dir():
        read("topics", lambda: topics(LocalTopicTable(root, disk, CountingClock())))
        read("watched", lambda: topics(WatchedTopicTable(root, disk)))
        read("groups", lambda: topics(LocalGroupTable(root, disk, CountingClock())))
        read("watched groups", lambda: topics(WatchedGroupTable(root, disk)))
        read("standing", lambda: standings_of(root).now)
        try:
            keeper = Keeper(root)
        except TandemError as error:
            found["metasync"] = error
        else:
            contents = {kind: keeper.content(kind) for kind in TableKind}
            found["metasync"] = {
                kind: (one.version, dict(one.entries), dict(one.other)) for kind, one in contents.items()
            }
            await keeper.close()
    found["audit"] = AuditFile(root).read()
    if (root / "access.toml").exists():
        read("access", lambda: _access(root / "access.toml"))
        read("signing", lambda: read_secrets(signing_file(root / "access.toml")))
    return found


def _access(path: Path) -> Any:
    table = parse_access(read_text(path), path.name)
    return {name: (one.secret, one.certificate, sorted(map(str, one.roles))) for name, one in table.principals.items()}


# -- damage -----------------------------------------------------------------------------------------------------------


def damage(path: Path, others: list[Path], chance: random.Random) -> str:
    """Damage a file; says how. The content is another one afterwards."""
    before, how, at = path.read_bytes(), "", 0
    while path.read_bytes() == before:
        how = chance.choice(["flip", "flip", "flip", "byte", "byte", "page", "truncate", "extend", "replace"])
        data, at = bytearray(before), chance.randrange(len(before)) if before else 0
        filled = [place for place in (before.find(bytes([chance.randrange(1, 256)])),) if place >= 0]
        if filled and chance.random() < 0.7:  # where something stands
            at = chance.choice([*filled, chance.randrange(len(before.rstrip(b"\0")) or 1)])
        if how in ("flip", "byte") and before:
            data[at] = data[at] ^ (1 << chance.randrange(8)) if how == "flip" else chance.randrange(256)
        elif how == "page" and before:
            start = at - at % PAGE
            data[start : start + PAGE] = bytes(len(data[start : start + PAGE]))
        elif how == "truncate":
            data = data[:at]
        elif how == "extend":
            data += chance.choice([b"\0" * PAGE, chance.randbytes(100), b"\n", bytes(before)])
        elif how == "replace":
            data = bytearray(chance.choice(others).read_bytes())
        path.write_bytes(data)
    return f"{how} at {at}"


def changed_range(before: bytes, after: bytes) -> tuple[int, int]:
    """The stretch in which two contents differ."""
    least = min(len(before), len(after))
    begin = next((at for at in range(least) if before[at] != after[at]), least)
    end = max(len(before), len(after))
    if len(before) == len(after):
        end = next(at for at in range(end, begin, -1) if before[at - 1] != after[at - 1])
    return begin, end


# -- judging ----------------------------------------------------------------------------------------------------------


@dataclass
class Case:
    """One damaged file, and what was found."""

    number: int
    scene: str
    file: str
    how: str
    verdict: str = ""
    faults: list[str] = field(default_factory=list)


class Campaign:
    """Scenes, what they hold, and cases."""

    def __init__(self, scenes: list[Scene], directory: Path, seed: int) -> None:
        self._scenes, self._directory, self._seed = scenes, directory, seed
        self._truth: dict[str, View] = {}

    async def prepare(self) -> None:
        """Look at the scenes as they are."""
        for scene in self._scenes:
            root = shutil.copytree(scene.root, self._directory / "work")
            with Ears() as ears:
                tables = await tables_of(root, ears)
                view = await view_of(scene, root, ears)
                await view_of(scene, root, ears, append=False)
            view.tables, view.told = tables, frozenset(ears.told)
            shutil.rmtree(root)
            assert view.messages, scene.name
            self._truth[scene.name] = view

    async def case(self, number: int) -> Case:
        """One case."""
        chance = random.Random(f"{self._seed}/{number}")
        weights = [1 if scene.name == "golden" else 4 for scene in self._scenes]
        scene = chance.choices(self._scenes, weights)[0]
        root = shutil.copytree(scene.root, self._directory / "work")
        kinds = kinds_of(root)
        victim = chance.choice(kinds[chance.choice(sorted(kinds))])
        before = victim.read_bytes()
        how = damage(victim, [path for paths in kinds.values() for path in paths if not _older(victim, path)], chance)
        case = Case(number, scene.name, str(victim.relative_to(root)), how)
        try:
            await self._judge(case, scene, root, victim, changed_range(before, victim.read_bytes()))
        except Exception:  # noqa: BLE001 - whatever it is, it is what the campaign looks for
            case.faults.append(traceback.format_exc(limit=-6))
        shutil.rmtree(root, ignore_errors=True)
        return case

    async def _judge(self, case: Case, scene: Scene, root: Path, victim: Path, hit: tuple[int, int]) -> None:
        truth = self._truth[scene.name]
        with Ears(truth.told) as ears:
            tables = await tables_of(root, ears)
            refused = [value for value in tables.values() if isinstance(value, TandemError)]
            case.faults += [f"does not name the file: {error}" for error in refused if not _names(error, victim)]
            unsealed = [
                name
                for name, value in tables.items()
                if not isinstance(value, TandemError) and value != truth.tables[name]
            ]
            if unsealed and not ears.told:
                if _is_unsealed(victim):
                    case.verdict = "limit"
                else:
                    case.faults.append(f"other tables, silently: {unsealed}")
            try:
                view = await view_of(scene, root, ears)
            except TandemError as error:
                case.verdict = "refused"
                if not _names(error, victim):
                    case.faults.append(f"does not name the file: {error}")
                return
        in_log = _log_stretch(victim, hit)
        told = bool(ears.told) or view.damage != truth.damage
        problems = list(_differences(truth, view, in_log, scene.master_log))
        hides = victim.parent.name == "index"  # an entry that may be, without a checksum: see docs/store-files.md
        limit = any(kind == "limit" or (kind == "key" and hides) for kind, _ in problems)
        case.faults += [
            text for kind, text in problems
            if kind == "never" or (not told and (kind == "silent" or (kind == "key" and not hides)))
        ]  # fmt: skip
        different = bool(problems) or bool(view.rotten - truth.rotten)
        if not case.verdict:
            case.verdict = (
                "limit"
                if limit
                else "refused"
                if refused
                else "reported"
                if told
                else "reader"
                if different
                else "served"
            )
        with Ears(truth.told) as ears:
            again = await view_of(scene, root, ears, append=False)
        lost = [at for at, data in view.messages.items() if again.messages.get(at) != data]
        if lost and not ears.told:
            case.faults.append(f"gone at the next start: {lost[:3]}")
        for queue, offset in view.appended.items():
            if (queue, offset) not in again.messages:
                case.faults.append(f"what was appended at {offset} of {queue} is gone")


def _names(error: TandemError, victim: Path) -> bool:
    text = error.explain() if hasattr(error, "explain") else str(error)
    return victim.name.removesuffix(".bak") in text or str(victim.parent) in text


def _older(victim: Path, path: Path) -> bool:
    """Whether a file is the victim, or its back-up: in its place that is a whole file, as it was before."""
    return path.with_name(path.name.removesuffix(".bak")) == victim.with_name(victim.name.removesuffix(".bak"))


def _is_unsealed(victim: Path) -> bool:
    """Whether no checksum is in a table: in RocketMQ's JSON, and in what people write."""
    return victim.name.startswith("access.") or (
        victim.parent.name == "config" and not victim.name.startswith("tandem.")
    )


def _log_stretch(victim: Path, hit: tuple[int, int]) -> tuple[int, int] | None:
    return (int(victim.name) + hit[0], int(victim.name) + hit[1]) if victim.parent.name == "commitlog" else None


def _differences(
    truth: View, view: View, in_log: tuple[int, int] | None, master_log: bytes
) -> Iterator[tuple[str, str]]:
    """What is other than it was: ``never`` to be, ``silent`` or ``key`` unless it was told, ``limit`` of the format."""
    yield from _other_messages(truth, view, in_log, master_log)
    yield from _other_numbers(truth, view, in_log)
    intact = {
        int.from_bytes(data[28:36], "big") for at, data in view.messages.items() if truth.messages.get(at) == data
    }
    for key in sorted(key for key in truth.keys - view.keys if key[0] in intact):
        yield "key", f"key {key} is not found"


def _other_messages(
    truth: View, view: View, in_log: tuple[int, int] | None, master_log: bytes
) -> Iterator[tuple[str, str]]:
    for at, data in view.messages.items():
        place, size = int.from_bytes(data[28:36], "big"), len(data)
        is_hit = in_log is not None and place < in_log[1] and in_log[0] < place + size
        if truth.messages.get(at) != data and master_log[place : place + size] != data:
            yield ("limit" if is_hit else "never"), f"invented: {at}"
    for at, data in truth.messages.items():
        if at not in view.messages and at not in view.rotten:
            yield "silent", f"missing: {at}, log offset {int.from_bytes(data[28:36], 'big')}"


def _other_numbers(truth: View, view: View, in_log: tuple[int, int] | None) -> Iterator[tuple[str, str]]:
    if view.role != truth.role:
        yield "never", f"it is {view.role}, not {truth.role}"
    for queue, (first, end) in truth.bounds.items():
        now = view.bounds.get(queue, (0, 0))
        if now[1] < end:
            yield ("silent" if in_log is not None else "never"), f"{queue} ends at {now[1]}, not {end}"
        if now[0] != first and any(at[0] == queue for at in truth.messages):
            yield "silent", f"{queue} begins at {now[0]}, not {first}"
    for queue, offset in view.appended.items():
        if offset < truth.bounds.get(queue, (0, 0))[1] and in_log is None:
            yield "never", f"{offset} of {queue} is given again"
    for when in view.store_times:
        if not FIRST_MS <= when <= max(truth.store_times) + LATER_MS and in_log is None:
            yield "never", f"store time {when}"


# -- running ----------------------------------------------------------------------------------------------------------


@contextmanager
def scratch(prefix: str) -> Iterator[Path]:
    """A directory in memory, where there is such a file system."""
    shared = Path("/dev/shm")
    with tempfile.TemporaryDirectory(prefix=prefix, dir=shared if shared.is_dir() else None) as name:
        yield Path(name)


async def judged(
    run: Callable[[int], Awaitable[Case]], seed: int, cases: int, first: int, *, say: bool
) -> tuple[Counter[str], list[Case]]:
    """Verdicts of so many cases from one on, and those with faults, which are said as they are found if asked for."""
    verdicts, bad = Counter[str](), list[Case]()
    for number in range(first, first + cases):
        case = await run(number)
        verdicts[case.verdict or "broken"] += 1
        if case.faults:
            bad.append(case)
            if say:
                sys.stdout.write(f"case {number} of seed {seed}: {json.dumps(case.__dict__)}\n")
                sys.stdout.flush()
    return verdicts, bad


async def campaign(
    seed: int, cases: int, first: int = 0, *, golden: bool = True, say: bool = False
) -> tuple[Counter[str], list[Case]]:
    """See `judged`."""
    with scratch("tandem-damage-") as directory:
        whole = Campaign(await all_scenes(directory / "scenes", golden=golden), directory, seed)
        await whole.prepare()
        return await judged(whole.case, seed, cases, first, say=say)


def soak(seed: int, cases: int, first: int = 0) -> int:
    """Many cases; what they found, as exit code."""
    return told("damage", seed, asyncio.run(campaign(seed, cases, first, say=True)))


def told(what: str, seed: int, found: tuple[Counter[str], list[Case]]) -> int:
    """Say what a campaign has found; its exit code."""
    verdicts, bad = found
    sys.stdout.write(f"{what} with seed {seed}: {dict(verdicts)}, {len(bad)} with faults\n")
    return 1 if bad else 0


def command_line(description: str | None, cases: int, soak: Callable[[int, int, int], int]) -> int:
    """The command line of a campaign of cases."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1 << 32))
    parser.add_argument("--cases", type=int, default=cases)
    parser.add_argument("--first", type=int, default=0)
    arguments = parser.parse_args()
    return soak(arguments.seed, arguments.cases, arguments.first)


if __name__ == "__main__":
    sys.exit(command_line(__doc__, CASES, soak))
