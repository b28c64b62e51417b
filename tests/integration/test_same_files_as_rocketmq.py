"""The same messages put in the same order make the same files: log, consume queues and index, byte for byte.

The messages are those of the golden store ``clean``; the clock and the addresses are handed in, so that even times
are equal.
"""

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tandemmq.store.format.index_layout import entry_position
from tandemmq.store.format.record import BLANK_SIZE, MAGIC_BLANK, Record, decode_record
from tandemmq.store.log.message_store import MessageStore
from tests.golden import golden_store
from tests.integration.test_golden_stores import config_for
from tests.stored_messages import message_of

FILE_SIZE = 1 << 20


@dataclass
class GoldenClock:
    """Says the time at which the real broker stored the record that comes next."""

    now: int = 0

    def now_ms(self) -> int:
        """The time that was set."""
        return self.now


def records_of(root: Path) -> Iterator[Record]:
    """Every record of a store's log, in order."""
    for path in sorted((root / "commitlog").iterdir()):
        data, at = path.read_bytes(), 0
        while data[at + 4 : at + 8] != MAGIC_BLANK.to_bytes(4, "big") and any(data[at : at + 8]):
            record = decode_record(data, at)
            yield record
            at += record.size


def put_all(store: MessageStore, clock: GoldenClock, records: list[Record]) -> None:
    """Append every record as a message; those of a batch that did not fit into the old file go as a batch again."""
    at = 0
    while at < len(records):
        record = records[at]
        clock.now = record.store_timestamp
        room = FILE_SIZE - store.commit_log.max_offset % FILE_SIZE
        count = 1
        if record.physical_offset != store.commit_log.max_offset:  # the real broker rolled here
            while sum(one.size for one in records[at : at + count]) + BLANK_SIZE <= room:
                count += 1
        store.append_messages([message_of(one) for one in records[at : at + count]])
        at += count


@pytest.mark.slow
@pytest.mark.parametrize("walker", ["never", "always"])
def test_the_same_messages_make_the_same_files(tmp_path: Path, walker: str) -> None:
    """Commit log and consume queues are equal whole; index files in header, slots and entries (names are times)."""
    golden = golden_store("clean") / "store"
    records = list(records_of(golden))
    clock = GoldenClock()

    async def write() -> None:
        from dataclasses import replace

        store = MessageStore.open(replace(config_for(tmp_path), compiled_walker=walker), clock=clock)
        store.start()
        put_all(store, clock, records)
        await store.close()

    asyncio.run(write())
    for path in sorted((golden / "commitlog").iterdir()):
        assert (tmp_path / "commitlog" / path.name).read_bytes() == path.read_bytes(), path.name
    for path in sorted((golden / "consumequeue").glob("*/*/*")):
        ours = tmp_path / path.relative_to(golden)
        assert ours.read_bytes() == path.read_bytes(), path
    ours_index = sorted((tmp_path / "index").iterdir())
    golden_index = sorted((golden / "index").iterdir())
    assert len(ours_index) == len(golden_index)
    for mine, theirs in zip(ours_index, golden_index, strict=True):
        assert mine.stat().st_size == theirs.stat().st_size == entry_position(2_000, 8_000)
        assert mine.read_bytes() == theirs.read_bytes(), theirs.name
