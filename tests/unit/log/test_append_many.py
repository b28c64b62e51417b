"""Many messages appended at once lie in the log as those appended one by one."""

from pathlib import Path

import pytest

from tandemmq.store.format import sysflag
from tandemmq.store.format.host import Host
from tandemmq.store.format.message import Message
from tandemmq.store.log.config import StoreConfig
from tandemmq.store.log.errors import RecordTooLarge
from tandemmq.store.log.message_store import MessageStore
from tandemmq.store.log.segments.commit_log import Appended

HOST = Host("10.0.0.1", 10911)
FILE_SIZE = 64 << 10


class _Clock:
    """A clock that stands."""

    def now_ms(self) -> int:
        return 1_760_000_000_000


def _open(root: Path, *, append_crc: bool = False) -> MessageStore:
    config = StoreConfig(
        root,
        mapped_file_size_commit_log=FILE_SIZE,
        mapped_file_size_consume_queue=2_000,
        max_hash_slot_num=50,
        max_index_num=500,
        max_message_size=FILE_SIZE,
        enabled_append_prop_crc=append_crc,
        compiled_walker="never",
    )
    return MessageStore.open(config, clock=_Clock())


def _message(number: int, size: int, flags: int = 0) -> Message:
    body = bytes([number]) * size
    return Message(f"topic {number % 3}", number % 2, body, b"KEYS\x01k", number, flags, 5, HOST, HOST)


def _places(appended: list[Appended]) -> list[tuple[int, ...]]:
    return [one[:4] for one in appended]


@pytest.mark.parametrize("append_crc", [False, True])
async def test_the_bytes_are_the_same(tmp_path: Path, append_crc: bool) -> None:
    """Topics and queues mixed, some transactional, over the ends of two files."""
    flags = (0, sysflag.TRANSACTION_PREPARED, sysflag.TRANSACTION_COMMIT, sysflag.TRANSACTION_ROLLBACK, 0)
    groups = [[_message(10 * group + one, 3_000, flags[one % 5]) for one in range(8)] for group in range(6)]
    together, alone = (_open(tmp_path / name, append_crc=append_crc) for name in ("together", "alone"))
    for group in groups:
        placed = together.append_messages(group)
        assert {one.end_offset for one in placed} == {together.commit_log.max_offset}
        if placed[0].physical_offset % FILE_SIZE == 0 and placed[0].physical_offset:
            filler = (
                FILE_SIZE - alone.commit_log.max_offset % FILE_SIZE
            )  # a group is kept together, single ones are not
            assert filler > 0
            alone.commit_log._room_for(FILE_SIZE - 8)
        assert _places(placed) == _places([alone.append(message) for message in group])
    end = together.commit_log.max_offset
    assert end > 2 * FILE_SIZE
    assert dict(together.commit_log.offsets) == dict(alone.commit_log.offsets)
    for start in range(0, end, FILE_SIZE):
        ours, theirs = together.commit_log.files.find(start), alone.commit_log.files.find(start)
        assert ours is not None
        assert theirs is not None
        assert ours.map[:] == theirs.map[:]
    for store in (together, alone):
        await store.close()


async def test_nothing_is_written_if_one_of_them_is_too_large(tmp_path: Path) -> None:
    """Nor is a queue offset used up."""
    store = _open(tmp_path)
    store.append_messages([_message(0, 10)])
    end, offsets = store.commit_log.max_offset, dict(store.commit_log.offsets)
    with pytest.raises(RecordTooLarge):
        store.append_messages([_message(0, 10), _message(6, FILE_SIZE), _message(0, 10)])
    assert (store.commit_log.max_offset, dict(store.commit_log.offsets)) == (end, offsets)
    assert store.append(_message(0, 10)).queue_offset == 1
    await store.close()


async def test_what_no_file_can_hold_is_appended_over_two(tmp_path: Path) -> None:
    """One after the other, numbered without a gap."""
    store = _open(tmp_path)
    placed = store.append_messages([_message(6 * one, 20_000) for one in range(5)])
    assert [one.queue_offset for one in placed] == [0, 1, 2, 3, 4]
    assert {one.end_offset for one in placed} == {store.commit_log.max_offset}
    assert placed[3].physical_offset == FILE_SIZE
    await store.close()
