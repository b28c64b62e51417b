"""Records that units name, read by the compiled core: the same as its Python twin reads, or nothing."""

from pathlib import Path
from typing import Any, NamedTuple
from unittest.mock import patch

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tandemmq.store.compiled_core import core_problem, reading_core
from tandemmq.store.format.buffers import ReadBuffer
from tandemmq.store.format.host import Host
from tandemmq.store.format.java import tags_code
from tandemmq.store.format.record import CorruptRecord, Message, decode_record, encode_record
from tandemmq.store.format.record_identity import behind_topic, shows_tags_code
from tandemmq.store.format.unit import UNIT_SIZE, pack_unit, unpack_units
from tandemmq.store.log.parts import RecordRun
from tandemmq.store.settings import CoreChoice
from tests.unit.broker.broker_kit import bodies, broker

pytestmark = pytest.mark.skipif(core_problem() != "", reason=core_problem() or "it is there")

START, FIRST, QUEUE_ID = 7_000, 40, 3
V4, V6 = Host("10.0.0.1", 10911), Host("2001:db8::1", 10911)
TOPICS = ("t", "orders", "o" * 127, "o" * 200)
TAGS = st.one_of(st.none(), st.sampled_from(["", "a", "tag", "TAGS", "x" * 40]))
MESSAGES = st.lists(
    st.tuples(st.binary(max_size=200), TAGS, st.booleans(), st.sampled_from([V4, V6]), st.sampled_from([V4, V6])),
    min_size=1,
    max_size=20,
)
"""Body, tag, whether another property comes first, and the two hosts."""


class Queue(NamedTuple):
    """A stretch of a log file, and the units that name its records."""

    topic: bytes
    log: bytes
    units: bytes


def core() -> RecordRun:
    made = reading_core(CoreChoice.AUTO)
    assert made is not None
    return made


def queue_of(topic: str, messages: list[tuple[bytes, str | None, bool, Host, Host]], gap: int) -> Queue:
    """`gap`: bytes between two records, as of another queue."""
    log, units = bytearray(), bytearray()
    for number, (body, tags, keys, born, store) in enumerate(messages):
        tag = b"" if tags is None else b"TAGS\x01%s\x02" % tags.encode()
        properties = (b"MYTAGS\x01no\x02" if keys else b"") + tag
        message = Message(topic, QUEUE_ID, body, properties, born_host=born, store_host=store)
        place = START + len(log)
        record = encode_record(message, FIRST + number, place, 1_760_000_000_000)
        units += pack_unit(place, len(record), tags_code(tags))
        log += record + bytes(gap)
    return Queue(topic.encode(), bytes(log), bytes(units))


def has_code(record: bytes, behind: int, code: int) -> bool:
    """As a pull finds out: at a glance, and where that says no, by decoding; what cannot be decoded is given out."""
    if shows_tags_code(record, behind, len(record), code):
        return True
    try:
        return tags_code(decode_record(record, verify=False).tags) == code
    except CorruptRecord:
        return True


def read_by_python(queue: Queue, room: int) -> tuple[int, bytes]:
    found = b""
    for number, (place, size, code) in enumerate(unpack_units(queue.units)):
        at = place - START
        if size > len(queue.log) or size < 88:
            return -1, b""
        if len(found) + size > room:
            return number, found
        if not 0 <= at < len(queue.log):
            return (number, found) if number else (-1, b"")
        if at + size > len(queue.log):
            return -1, b""
        behind = behind_topic(queue.log, at, queue.topic, QUEUE_ID, FIRST + number, place, size)
        record = queue.log[at : at + size]
        if behind < 0 or not has_code(record, behind - at, code):
            return -1, b""
        found += record
    return len(queue.units) // UNIT_SIZE, found


def read_by_core(queue: Queue, room: int) -> tuple[int, bytes]:
    stop = START + len(queue.log)
    return core().read(queue.units, queue.log, START, stop, queue.topic, QUEUE_ID, FIRST, room)


@pytest.mark.slow
@given(st.sampled_from(TOPICS), MESSAGES, st.sampled_from([0, 100]), st.integers(0, 10_000))
def test_both_read_the_same(
    topic: str, messages: list[tuple[bytes, str | None, bool, Host, Host]], gap: int, room: int
) -> None:
    queue = queue_of(topic, messages, gap)
    assert read_by_core(queue, room) == read_by_python(queue, room)
    assert read_by_core(queue, 1 << 30)[0] == len(messages)


@pytest.mark.slow
@example("orders", [(b"one", None, True, V4, V6)], 110, 0, False)  # PROPERTIESLENGTH
@given(st.sampled_from(TOPICS), MESSAGES, st.integers(0, 1 << 20), st.integers(0, 7), st.booleans())
def test_what_does_not_fit_is_left_to_python(
    topic: str, messages: list[tuple[bytes, str | None, bool, Host, Host]], at: int, bit: int, of_unit: bool
) -> None:
    """One bit is wrong, of a unit or of a record."""
    queue = queue_of(topic, messages, 0)
    changed = bytearray(queue.units if of_unit else queue.log)
    changed[at % len(changed)] ^= 1 << bit
    queue = queue._replace(units=bytes(changed)) if of_unit else queue._replace(log=bytes(changed))
    by_core = read_by_core(queue, 1 << 30)
    assert by_core[0] == -1 or by_core == read_by_python(queue, 1 << 30)


@pytest.mark.parametrize("tags", ["été", "日本", "a\x01b"])
def test_a_tag_of_other_letters_is_left_to_python(tags: str) -> None:
    queue = queue_of("orders", [(b"one", tags, False, V4, V4)] * 2, 0)
    assert read_by_core(queue, 1 << 20)[0] == (2 if tags.isascii() else -1)
    assert read_by_python(queue, 1 << 20)[0] == 2


def test_a_stretch_of_no_record_is_not_read_beyond_its_end() -> None:
    """A record of one byte too few for its head; one that says that it has IPv6 hosts, at the end of the file."""
    queue = queue_of("t", [(b"", None, False, V4, V4)], 0)
    log = bytearray(queue.log)
    log[39] |= 0x30
    assert read_by_core(queue._replace(log=bytes(log)), 1 << 20) == (-1, b"")
    place, size, code = unpack_units(queue.units)[0]
    for wrong in (0, 87, size - 1, size + 1, -1, (1 << 31) - 1):
        assert read_by_core(queue._replace(units=pack_unit(place, wrong, code)), 1 << 20)[0] == -1
    for wrong in (-1, 0, START - 1, START + 1, START + len(log), 1 << 62, -(1 << 63)):
        assert read_by_core(queue._replace(units=pack_unit(wrong, size, code)), 1 << 20)[0] == -1


@pytest.mark.slow
async def test_pulls_are_the_same(tmp_path: Path) -> None:
    """Other queues' records lie between, and queues and log go over many files."""
    async with broker(tmp_path) as kit:
        for number in range(1_200):
            kit.send("orders", b"%d" % number * (number % 60), number % 3 % 2, TAGS="ab"[number % 2])
        await kit.dispatched()
        assert len(kit.store.commit_log.files.files) > 2
        limits = [(1, 1 << 20), (7, 1 << 20), (1_000, 1_000), (1_000, 100), (1_000, 1 << 20)]
        for queue_id in (0, 1):
            for offset in range(0, 400, 13):
                for messages, size in limits:
                    kit.store.use_core(None)
                    expected = kit.pull("orders", queue_id, offset, max_messages=messages, max_bytes=size)
                    kit.store.use_core(core())
                    pulled = kit.pull("orders", queue_id, offset, max_messages=messages, max_bytes=size)
                    assert pulled == expected
                    assert bodies(pulled)


class Counted:
    """The core; it refuses to be asked for ever."""

    def __init__(self) -> None:
        self.asked = 0

    def read(
        self, units: bytes, log: ReadBuffer, start: int, stop: int, topic: bytes, queue_id: int, first: int, room: int
    ) -> tuple[int, bytes]:
        self.asked += 1
        assert self.asked < 100
        return core().read(units, log, start, stop, topic, queue_id, first, room)

    def read_tagged(self, *_: Any) -> tuple[int, int, bool, bytes]:
        raise AssertionError("no tags are wanted here")


async def test_a_pull_ends_where_there_is_no_room_for_a_unit_that_names_what_is_not_in_the_log(tmp_path: Path) -> None:
    """Not yet in the log, but within its newest file."""
    async with broker(tmp_path) as kit:
        for number in range(10):
            kit.send("orders", b"%d" % number, 0)
        await kit.dispatched()
        queue, end = kit.store.queue("orders", 0), kit.store.commit_log.max_offset
        assert queue is not None
        units = queue.read(0, 10)
        queue.put(5, pack_unit(end, units[5].size, units[5].tags_code))
        room = sum(unit.size for unit in units[:5])
        kit.store.use_core(Counted())
        assert bodies(kit.pull("orders", 0, 0, max_messages=10, max_bytes=room)) == [b"0", b"1", b"2", b"3", b"4"]


async def test_a_queue_file_that_ends_within_a_unit_is_read_one_by_one(tmp_path: Path) -> None:
    async with broker(tmp_path) as kit:
        for number in range(3):
            kit.send("orders", b"%d" % number, 0)
        await kit.dispatched()
        queue = kit.store.queue("orders", 0)
        assert queue is not None
        short = queue.read_bytes(0, 3)[:-15]
        kit.store.use_core(core())
        with patch.object(type(queue), "read_bytes", lambda _, offset, __: short[offset * UNIT_SIZE :]):
            assert kit.store.read_bulk(queue, 0, 3, 1 << 20) is None
