"""The staging ring: every byte that is needed stays where it was put until the store has it."""

import os
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tandemmq.replicator.slave.slave_errors import StagingFailed
from tandemmq.replicator.slave.staging import Ring, StagingFile, remove_leftovers


def test_while_the_store_keeps_up_the_ring_begins_anew() -> None:
    ring = Ring(1000, read_size=400)
    for turn in range(10):
        assert ring.room() == (0, 400)
        assert ring.received(300) == 0
        ring.settle(log_end=300 * (turn + 1))
        ring.free(300 * (turn + 1))
    assert ring.held == 0


def test_a_full_ring_has_no_room_until_the_store_acks() -> None:
    ring = Ring(1000)
    ring.room()
    ring.received(1000)
    ring.settle(5000)
    assert ring.room()[1] == 0
    ring.free(4999)
    assert ring.room()[1] == 0
    ring.free(5000)
    assert ring.room() == (0, 1000)


def test_heartbeats_behind_a_body_are_freed_with_it() -> None:
    ring = Ring(1000)
    ring.received(100)
    ring.settle(88)
    ring.received(24)
    ring.settle(None)
    assert ring.held == 124
    ring.free(88)
    assert ring.held == 0


def test_room_ends_with_the_file() -> None:
    ring = Ring(1000)
    ring.received(900)
    ring.settle(1)
    ring.received(50)
    ring.settle(2)
    ring.free(1)
    assert ring.room() == (950, 50)
    assert ring.received(50) == 950
    ring.settle(3)
    assert ring.room() == (0, 900)


turns = st.lists(
    st.one_of(
        st.tuples(st.just("read"), st.integers(1, 120), st.booleans()),
        st.tuples(st.just("ack"), st.integers(0, 400), st.booleans()),
    ),
    max_size=80,
)


@settings(deadline=None)
@given(size=st.integers(20, 150), read_size=st.integers(1, 200), steps=turns)
def test_bytes_that_are_needed_are_never_overwritten(
    size: int, read_size: int, steps: list[tuple[str, int, bool]]
) -> None:
    """Model: a real buffer, and for each log offset that the store lacks the byte that must still lie there."""
    ring, memory = Ring(size, read_size), bytearray(size)
    needed: dict[int, int] = {}
    received = acked = 0
    for kind, amount, flag in steps:
        if kind == "read":
            position, room = ring.room()
            assert position + room <= size
            if not room:
                assert needed, "a ring that holds nothing must have room"
                continue
            count = min(amount, room)
            assert ring.received(count) == position
            held = set(needed.values())
            assert not held & set(range(position, position + count))
            for at in range(position, position + count):
                memory[at] = received % 251
                if flag:
                    needed[received] = at
                    received += 1
            ring.settle(received if flag else None)
        else:
            acked = min(received, acked + amount)
            ring.free(acked)
            needed = {offset: at for offset, at in needed.items() if offset >= acked}
        for offset, at in needed.items():
            assert memory[at] == offset % 251
    ring.free(received)
    assert ring.held == 0


def test_the_file_has_all_its_blocks_and_is_shared(tmp_path: Path) -> None:
    staging = StagingFile(tmp_path, 64 << 10)
    path = tmp_path / staging.name
    assert os.stat(path).st_blocks * 512 >= 64 << 10
    staging.view[100:103] = b"abc"
    assert path.read_bytes()[100:103] == b"abc"
    with path.open("rb") as store:
        staging.unlink()
        staging.view[100:103] = b"xyz"
        assert os.pread(store.fileno(), 3, 100) == b"xyz"
    staging.close()
    assert list(tmp_path.iterdir()) == []


def test_closing_does_not_mind_what_still_looks_at_it(tmp_path: Path) -> None:
    staging = StagingFile(tmp_path, 4096)
    seen = staging.view[:10]
    staging.close()
    assert bytes(seen) == bytes(10)


def test_leftovers_of_the_dead_are_removed(tmp_path: Path) -> None:
    (tmp_path / "tandem.staging.123").write_bytes(b"x")
    (tmp_path / "tandem.epoch").write_bytes(b"x")
    remove_leftovers(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["tandem.epoch"]


def test_a_directory_that_is_not_there_is_a_clear_error(tmp_path: Path) -> None:
    with pytest.raises(StagingFailed, match="No such file"):
        StagingFile(tmp_path / "none", 4096)
