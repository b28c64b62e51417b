"""Consume queue units, checkpoint and message ids: vectors E, G, H."""

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tandemmq.store.format import message_id
from tandemmq.store.format.checkpoint import CHECKPOINT_SIZE, Checkpoint, CorruptCheckpoint
from tandemmq.store.format.host import Host
from tandemmq.store.format.java import tags_code
from tandemmq.store.format.unit import (
    BLANK_UNIT,
    SCHEDULE_TOPIC,
    Unit,
    is_blank,
    is_empty,
    pack_unit,
    record_tags_code,
    unpack_units,
)

NOW = 1_700_000_000_000
UNIQ_KEY = "C0A8001430391B2C3D4E47B760000007"


def test_vector_e_units() -> None:
    assert pack_unit(0, 167, tags_code("TagA")).hex() == "0000000000000000000000a7000000000027a807"
    assert pack_unit(0, 167, tags_code("TagABCDEF")).hex() == "0000000000000000000000a7ffffffffbe14d05d"
    levels = (1000, 5000, 10_000, 30_000)
    due = record_tags_code(SCHEDULE_TOPIC, {"DELAY": "3", "TAGS": "TagA"}, NOW + 123, levels)
    assert due == 1_700_000_010_123
    assert pack_unit(171, 176, due).hex() == "00000000000000ab000000b00000018bcfe58f8b"


def test_delivery_time_rules() -> None:
    assert record_tags_code(SCHEDULE_TOPIC, {"DELAY": "9"}, 5, (1000, 2000)) == 2005
    assert record_tags_code(SCHEDULE_TOPIC, {"DELAY": "0", "TAGS": "TagA"}, 5, (1000,)) == 2598919
    assert record_tags_code("Other", {"DELAY": "1", "TAGS": "TagA"}, 5, (1000,)) == 2598919
    assert record_tags_code(SCHEDULE_TOPIC, {"DELAY": "1"}, (1 << 63) - 1, (1,)) == -(1 << 63)


def test_t5_blank_units_are_recognised() -> None:
    """(0, 7FFFFFFF, 0) stands for a unit that never was, not for a message at offset 0."""
    assert BLANK_UNIT.hex() == "00000000000000007fffffff0000000000000000"
    blank, empty, real = unpack_units(BLANK_UNIT + bytes(20) + pack_unit(0, 167, 0) + b"rest")
    assert [is_blank(blank), is_blank(empty), is_blank(real)] == [True, False, False]
    assert [is_empty(blank), is_empty(empty), is_empty(real)] == [False, True, False]
    assert is_empty(Unit(-1, 5, 0))


def test_vector_g_offset_ids() -> None:
    host = Host("192.168.0.10", 10911)
    assert message_id.encode_offset_id(host, 0) == "C0A8000A00002A9F0000000000000000"
    assert message_id.encode_offset_id(host, 4096) == "C0A8000A00002A9F0000000000001000"
    v6 = Host("2001:db8::1", 10911)
    assert message_id.encode_offset_id(v6, 4096) == "20010DB800000000000000000000000100002A9F0000000000001000"


@given(st.sampled_from([Host("1.2.3.4", 0), Host("fe80::9", 65535)]), st.integers(0, (1 << 63) - 1))
def test_offset_ids_round_trip(host: Host, offset: int) -> None:
    assert message_id.decode_offset_id(message_id.encode_offset_id(host, offset)) == (host, offset)


@pytest.mark.parametrize("text", ["", "00", "G" * 32, "C0A8000A 0002A9F0000000000000000", "00" * 17, "0 " * 16])
def test_illegal_ids(text: str) -> None:
    with pytest.raises(message_id.IllegalMessageId):
        message_id.decode_offset_id(text)


def test_unique_id_vector() -> None:
    ip = bytes((192, 168, 0, 20))
    generator = message_id.UniqueIdGenerator(ip, 12345, 0x1B2C3D4E, UTC)
    assert [generator.next(NOW) for _ in range(8)][7] == UNIQ_KEY


def test_unique_ids_at_month_ends() -> None:
    """Counted from the new month when one begins; above 2^31 ms late in it; a clock set back is not followed."""
    generator = message_id.UniqueIdGenerator(bytes(4), 1, 2, UTC)

    def since(*date: int) -> int:
        moment = datetime(*date, tzinfo=UTC)  # type: ignore[arg-type, misc]
        return int(generator.next(int(moment.timestamp() * 1000))[20:28], 16)

    assert since(2023, 12, 31, 23, 59, 59) == 2_678_399_000
    assert since(2024, 1, 1) == 0
    assert since(2023, 12, 31, 23, 59, 59) == 0
    assert since(2024, 1, 1, 0, 0, 1) == 1000


@pytest.mark.parametrize("back", [0, 1, 5_000, 7_200_000])
def test_no_unique_id_is_made_twice_when_the_clock_is_set_back(back: int) -> None:
    """Again and again to the same millisecond, while all numbers come round."""
    generator = message_id.UniqueIdGenerator(bytes(4), 1, 2, UTC)
    made = [generator.next(NOW - back * ((at >> 9) % 2)) for at in range(140_000)]
    assert len({*made}) == len(made)


@pytest.mark.parametrize("far", [253_402_300_799_999, 253_402_300_800_000, 10**18 - 1, 2**63 - 1])
def test_a_time_that_no_calendar_has_does_not_end_all_ids(far: int) -> None:
    """A client may say anything of when a message was made; the ids of all others come after it."""
    generator = message_id.UniqueIdGenerator(bytes(4), 1, 2, UTC)
    made = [generator.next(at) for at in (NOW, far, NOW, far, far + 1, NOW)]
    assert len({*made}) == len(made)


def test_vector_h_checkpoint() -> None:
    data = Checkpoint(NOW + 123, NOW + 123).encode()
    assert len(data) == CHECKPOINT_SIZE
    assert data[:40].hex() == "0000018bcfe5687b0000018bcfe5687b000000000000000000000000000000000000000000000000"
    assert not any(data[40:])


def test_checkpoint_keeps_what_it_does_not_know() -> None:
    data = Checkpoint(1, 2, 3, 4, 5, b"later").encode()
    assert Checkpoint.decode(data) == Checkpoint(1, 2, 3, 4, 5, b"later")
    assert Checkpoint.decode(data).encode() == data
    assert Checkpoint.decode(data[:24]) == Checkpoint(1, 2, 3)
    with pytest.raises(CorruptCheckpoint):
        Checkpoint.decode(data[:23])
