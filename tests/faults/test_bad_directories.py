"""What may lie in a store directory: each oddity is a clear, typed error that changes nothing, or it is repaired."""

import asyncio
import hashlib
import random
import shutil
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, seed, settings
from hypothesis import strategies as st

from tandemmq.common.errors import Kind
from tandemmq.store.log.errors import (
    FileSizeMismatch,
    ForeignFile,
    MisplacedDirectory,
    StoreError,
    StoreLocked,
    UnusableDirectory,
)
from tandemmq.store.log.message_store import MessageStore
from tests.campaigns import in_campaigns
from tests.faults.checker import Ack, Checker
from tests.faults.harness import QUEUES, SEED, audit, message, read_queue, settle, small_config, value_parts

REPOSITORY = Path(__file__).resolve().parents[2]
MESSAGES = 400


@asynccontextmanager
async def opened(root: Path, **changes: Any) -> AsyncIterator[MessageStore]:
    """A started store on ``root``, closed at the end."""
    store = MessageStore.open(small_config(root, **changes))
    store.start()
    try:
        yield store
    finally:
        await store.close()


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A cleanly closed store with several files of every kind."""
    root = tmp_path_factory.mktemp("template") / "store"

    async def fill() -> None:
        async with opened(root) as store:
            for number in range(MESSAGES):
                store.append(message(QUEUES[number % len(QUEUES)], f"c1-p0-{number}"))
            await settle(store)

    asyncio.run(fill())
    assert len([*(root / "commitlog").iterdir()]) > 1
    return root


@pytest.fixture
def root(template: Path, tmp_path: Path) -> Path:
    shutil.copytree(template, tmp_path / "store")
    return tmp_path / "store"


async def everything_is_there(root: Path, messages: int = MESSAGES, **changes: Any) -> MessageStore:
    """Open, compare all, close; gives the closed store, whose report may be looked at."""
    checker = Checker()
    async with opened(root, **changes) as store:
        found = await audit(store)
        assert len(found.records) >= messages
        for record in found.records:
            producer, number = value_parts(record.value)
            checker.ack(
                Ack(
                    record.value,
                    producer,
                    number,
                    record.queue,
                    record.offset,
                    record.physical,
                    record.size,
                    record.crc,
                )
            )
        checker.audit(found)
        assert not checker.problems
    return store


def fingerprint(root: Path) -> dict[str, str]:
    """Names and contents of all files but the lock."""
    return {
        str(path.relative_to(root)): hashlib.sha1(path.read_bytes()).hexdigest()
        for path in sorted(root.rglob("*"))
        if path.is_file() and path.name != "lock"
    }


def one_of(root: Path, pattern: str) -> Path:
    return sorted(root.glob(pattern))[0]


# -- refused, and left alone ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("pattern", ["commitlog/*", "consumequeue/*/*/*", "index/*"])
@pytest.mark.parametrize("change", [-1, 1, 4096])
def test_a_file_of_the_wrong_size_is_refused(root: Path, pattern: str, change: int) -> None:
    """Traps aside, this is what stops a Java broker too: `mappedFileSizeCommitLog` does not fit the files."""
    path = one_of(root, pattern)
    with path.open("r+b") as file:
        file.truncate(path.stat().st_size + change)
    before = fingerprint(root)
    with pytest.raises(FileSizeMismatch, match=path.name) as caught:
        MessageStore.open(small_config(root))
    assert caught.value.kind is Kind.UNUSABLE
    assert fingerprint(root) == before


@pytest.mark.parametrize(
    "place",
    ["commitlog", "index", "consumequeue/orders", "consumequeue/a-rather-long-topic-name-for-a-change/0"],
)
def test_a_foreign_file_is_refused(root: Path, place: str) -> None:
    """In the first queue, on which the settings are tried; others that have one are set aside when they are used."""
    (root / place / "notes.txt").write_text("not mine")
    before = fingerprint(root)
    with pytest.raises(ForeignFile, match=r"notes\.txt"):
        MessageStore.open(small_config(root))
    assert fingerprint(root) == before


def test_a_directory_in_place_of_a_log_file_is_refused(root: Path) -> None:
    """It is no file that is missing: none could be made there."""
    path = max((root / "commitlog").iterdir())
    path.rename(root / "kept")
    path.mkdir()
    before = fingerprint(root)
    with pytest.raises(MisplacedDirectory, match=path.name):
        MessageStore.open(small_config(root))
    assert fingerprint(root) == before


@pytest.mark.parametrize(
    "changes", [{"mapped_file_size_commit_log": 32768}, {"mapped_file_size_consume_queue": 4000}, {"max_index_num": 9}]
)
def test_other_settings_than_the_files_were_written_with_are_refused(root: Path, changes: dict[str, Any]) -> None:
    before = fingerprint(root)
    with pytest.raises(UnusableDirectory):
        MessageStore.open(small_config(root, **changes))
    assert fingerprint(root) == before


@pytest.mark.timeout(300)
async def test_a_second_process_is_refused_and_touches_nothing(root: Path) -> None:
    """Trap T2: RocketMQ recovers (and deletes the live index file) before it finds out that the store is locked."""
    program = (
        "import sys; from pathlib import Path; from tests.faults.harness import *\n"
        "from tandemmq.store.log.errors import StoreLocked\n"
        "try: MessageStore.open(small_config(Path(sys.argv[1])))\n"
        "except StoreLocked as error: print('locked:', error.kind.name)"
    )
    async with opened(root) as store:
        one = store.append(message(QUEUES[0], "c2-p0-0"))
        await settle(store)
        await store._checkpointer.stop()
        before = fingerprint(root)
        command = [sys.executable, "-c", program, str(root)]
        outcome = await asyncio.to_thread(
            subprocess.run, command, cwd=REPOSITORY, capture_output=True, text=True, check=False, timeout=200
        )
        assert outcome.stdout.startswith("locked:"), outcome.stderr
        assert fingerprint(root) == before
        with pytest.raises(StoreLocked):  # nor does this process get in twice
            MessageStore.open(small_config(root))
        assert store.read_record(one.physical_offset) is not None
        two = store.append(message(QUEUES[0], "c2-p0-1"))
        assert await store.wait_flushed(two.end_offset)
    await everything_is_there(root)


# -- repaired ---------------------------------------------------------------------------------------------------------


def garbage(path: Path) -> None:
    path.write_bytes(random.Random(SEED).randbytes(4096))


def ones(path: Path) -> None:
    path.write_bytes(b"\x7f" * 4096)


def short(path: Path) -> None:
    path.write_bytes(b"abc")


def empty(path: Path) -> None:
    path.write_bytes(b"")


def missing(path: Path) -> None:
    path.unlink(missing_ok=True)


def other_json(path: Path) -> None:
    path.write_text('{"version": 1, "checkpoint": "x", "position": {}, "queues": [], "index": 5}')


def json_list(path: Path) -> None:
    path.write_text('[{"begin": 0, "end": 99999999, "kind": "rot", "reason": "no"}]')


@pytest.mark.parametrize("spoil", [garbage, short, json_list, *in_campaigns(ones, empty, missing, other_json)])
@pytest.mark.parametrize("name", ["checkpoint", "tandem.manifest", "tandem.damage"])
@pytest.mark.parametrize("clean", [True, pytest.param(False, marks=pytest.mark.slow)], ids=["clean", "crashed"])
async def test_unreadable_notes_cost_time_and_nothing_else(
    root: Path, name: str, spoil: Callable[[Path], None], clean: bool
) -> None:
    """An unreadable checkpoint is never an empty one: more of the log is read, nothing is cut."""
    spoil(root / name)
    if not clean:
        (root / "abort").write_text("1")
    await everything_is_there(root)
    await everything_is_there(root)


@pytest.mark.parametrize("name", ["checkpoint", "tandem.manifest", "tandem.damage", "abort"])
def test_a_directory_in_place_of_a_file_is_a_typed_error(root: Path, name: str) -> None:
    (root / name).unlink(missing_ok=True)
    (root / name).mkdir()
    with pytest.raises(StoreError, match=name):
        MessageStore.open(small_config(root))


def derived_files(root: Path) -> Iterator[Path]:
    yield from sorted(root.glob("consumequeue/*/*/*"))
    yield from sorted(root.glob("index/*"))
    yield from (root / name for name in ("checkpoint", "tandem.manifest"))


flips = st.lists(
    st.tuples(st.integers(0, 10_000), st.floats(0, 1, exclude_max=True), st.integers(0, 7)), min_size=1, max_size=8
)


def flip(root: Path, places: list[tuple[int, float, int]]) -> set[Path]:
    """Flip bits in derived files; gives the files that were hit."""
    files = list(derived_files(root))
    hit = set()
    for pick, place, bit in places:
        path = files[pick % len(files)]
        data = bytearray(path.read_bytes())
        data[int(place * len(data))] ^= 1 << bit
        path.write_bytes(data)
        hit.add(path)
    return hit


def quick_settings(examples: int) -> Callable[[Callable[..., None]], Callable[..., None]]:
    return settings(
        max_examples=examples, deadline=None, database=None, suppress_health_check=list(HealthCheck), print_blob=True
    )


@pytest.mark.slow
@pytest.mark.timeout(900)
@seed(SEED)
@quick_settings(60)
@given(places=flips, crashed=st.booleans())
def test_flipped_bits_in_derived_files_are_repaired_by_a_full_verification(
    template: Path, tmp_path_factory: pytest.TempPathFactory, places: list[tuple[int, float, int]], crashed: bool
) -> None:
    """Trap T27: asked to, the store compares every unit and every key with the log."""
    root = tmp_path_factory.mktemp("flips") / "store"
    shutil.copytree(template, root)
    flip(root, places)
    if crashed:
        (root / "abort").write_text("1")
    asyncio.run(everything_is_there(root, verify_whole_log_on_start=True))
    shutil.rmtree(root)


@pytest.mark.slow
@pytest.mark.timeout(900)
@seed(SEED)
@quick_settings(60)
@given(places=flips, crashed=st.booleans())
def test_flipped_bits_in_derived_files_never_show_a_wrong_message(
    template: Path, tmp_path_factory: pytest.TempPathFactory, places: list[tuple[int, float, int]], crashed: bool
) -> None:
    """Without a full verification a unit that is damaged hides its message, and no other."""
    root = tmp_path_factory.mktemp("flips") / "store"
    shutil.copytree(template, root)
    hit = flip(root, places)
    if crashed:
        (root / "abort").write_text("1")

    async def look() -> None:
        async with opened(root) as store:
            await settle(store)
            for at, queue in enumerate(QUEUES):
                expected = {number // 6: f"c1-p0-{number}" for number in range(MESSAGES) if number % 6 == at}
                try:
                    found = {offset: value for offset, value, _, _ in read_queue(store, queue, 0)}
                except AssertionError:  # another queue's record: the broker compares, as this reader does
                    assert root / "consumequeue" / queue[0] / str(queue[1]) in {path.parent for path in hit}
                    continue
                assert {offset: value for offset, value in found.items() if value != expected.get(offset)} == {}
                if not any(root / "consumequeue" / queue[0] / str(queue[1]) == path.parent for path in hit):
                    assert found == expected
            one = store.append(message(QUEUES[0], "c2-p0-0"))
            assert await store.wait_flushed(one.end_offset)

    asyncio.run(look())
    shutil.rmtree(root)
