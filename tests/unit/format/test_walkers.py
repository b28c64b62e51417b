"""Both walkers: what they find, where they stop, and that they agree on everything."""

import mmap
import subprocess
import sys
from collections.abc import Callable

import pytest
from hypothesis import strategies as st

from tandemmq.store.format.index_layout import IndexHeader, file_size
from tandemmq.store.format.record import Message, decode_record, encode_blank, encode_record
from tandemmq.store.format.unit import SCHEDULE_TOPIC, unpack_units
from tandemmq.store.format.walker import Stop, Walker, compiled_walker, python_walker
from tests.campaigns import examples
from tests.unit.format.logs import LEVELS, V4, V6, damaged_logs, logs, outcome, props

NOW = 1_700_000_000_000
walkers = pytest.mark.parametrize("make", [python_walker, compiled_walker])
PYTHON, COMPILED = python_walker(), compiled_walker()


def log_of(*messages: tuple[Message, int], base: int = 0, append_crc: bool = False) -> bytes:
    log = b""
    for number, (message, offset) in enumerate(messages):
        log += encode_record(message, offset, base + len(log), NOW + number, append_crc)
    return log


def message(topic: str = "T", queue_id: int = 0, properties: bytes = b"", **more: int) -> Message:
    return Message(topic, queue_id, b"body", properties, born_host=V4, store_host=V6, **more)


def walk_both(
    log: bytes, base: int, *, check_crc: bool = True, limit: int = 65536, force: bool = False, begin: int = 0
) -> Stop:
    walks = [
        walker.walk(
            log, begin, len(log), base, check_crc=check_crc, limit=limit, delay_levels=LEVELS, force_crc_property=force
        )
        for walker in (PYTHON, COMPILED)
    ]
    assert outcome(walks[0]) == outcome(walks[1])
    indexes = [bytearray(file_size(5, 12)) for _ in walks]
    for preset in (0, NOW - 7000):
        for index in indexes:
            index[:40] = IndexHeader(preset, preset).pack()
        place = (0, 0)
        for _ in range(20):
            places = [
                walk.index_into(index, 5, 12, *place, base + 100) for walk, index in zip(walks, indexes, strict=True)
            ]
            assert places[0] == places[1]
            assert indexes[0] == indexes[1]
            if places[0] == (walks[0].count, 0):
                break
            place = places[0]
            for index in indexes:
                index[:] = bytes(len(index))
        else:
            raise AssertionError("indexing does not end")
    return walks[0].stop


@examples(10, 300, logs(), st.booleans())
def test_same_results_on_valid_logs(log: tuple[bytes, int], check_crc: bool) -> None:
    stop = walk_both(*log, check_crc=check_crc)
    assert stop in (Stop.END, Stop.BLANK, Stop.ZERO, Stop.BAD_MAGIC, Stop.INCOMPLETE)


@examples(40, 600, damaged_logs(), st.booleans(), st.booleans(), st.sampled_from([1, 3, 65536]))
def test_same_results_on_damaged_logs(log: tuple[bytes, int], check_crc: bool, force: bool, limit: int) -> None:
    walk_both(*log, check_crc=check_crc, force=force, limit=limit)


@examples(40, 200, damaged_logs(), st.integers(0, 300))
def test_same_results_from_anywhere(log: tuple[bytes, int], begin: int) -> None:
    data, base = log
    walk_both(data, base, begin=min(begin, len(data)))
    begin = min(begin, len(data))
    assert PYTHON.resync(data, begin, len(data), base) == COMPILED.resync(data, begin, len(data), base)


@examples(40, 200, st.binary(max_size=400).map(lambda tail: b"\x00\x00\x00\x70\xda\xa3\x20\xa7" + tail))
def test_same_results_on_nonsense(data: bytes) -> None:
    walk_both(data, 0, check_crc=False)


@walkers
def test_runs_are_split_by_queue_and_where_offsets_jump(make: Callable[[], Walker]) -> None:
    log = log_of(
        (message("A"), 5),
        (message("B"), 0),
        (message("A"), 6),
        (message("A", sys_flag=4), 0),  # prepared: in no queue
        (message("A", sys_flag=12), 0),  # rolled back: neither
        (message("A", sys_flag=8), 7),
        (message("A", queue_id=1), 6),
        (message("A"), 9),
        base=1000,
    )
    walk = make().walk(log, 0, len(log), 1000, check_crc=True)
    found = [(run.topic, run.queue_id, run.first_queue_offset, run.count) for run in walk.runs()]
    assert found == [("A", 0, 5, 3), ("B", 0, 0, 1), ("A", 1, 6, 1), ("A", 0, 9, 1)]
    first = walk.runs()[0]
    units = unpack_units(first.units)
    assert units[0].physical_offset == first.first_physical == 1000
    assert first.last_end_physical == units[2].physical_offset + units[2].size
    assert first.last_store_timestamp == NOW + 5
    assert (walk.count, walk.stop, walk.position) == (8, Stop.END, len(log))
    assert (walk.first_store_timestamp, walk.last_store_timestamp, walk.max_store_timestamp) == (NOW, NOW + 7, NOW + 7)
    assert decode_record(log, walk.last_offset - 1000).queue_offset == 9


@walkers
def test_topics_that_differ_in_one_byte_are_different(make: Callable[[], Walker]) -> None:
    topics = [f"Topic-{number}-with-a-long-name" for number in range(50)] + ["Aa", "BB", "AaAa", "BBBB", "AaBB", ""]
    log = log_of(*((message(topic, queue), 0) for topic in topics for queue in (0, 1)))
    runs = make().walk(log, 0, len(log), 0, check_crc=True).runs()
    assert [(run.topic, run.queue_id) for run in runs] == [(topic, queue) for topic in topics for queue in (0, 1)]


@walkers
@pytest.mark.parametrize(
    ("change", "stop"),
    [
        (lambda log: log, Stop.END),
        (lambda log: log + b"\x01\x02\x03", Stop.END),
        (lambda log: log + encode_blank(500), Stop.BLANK),
        (lambda log: log + bytes(8), Stop.ZERO),
        (lambda log: log + bytes(7), Stop.INCOMPLETE),
        (lambda log: log + b"\x11" * 8, Stop.BAD_MAGIC),
        (lambda log: log + b"\x00\x00\x00\x5a\xda\xa3\x20\xa7", Stop.BAD_SIZE),
        (lambda log: log + log[:-1], Stop.INCOMPLETE),
        (lambda log: log + log, Stop.BAD_POSITION),
        (lambda log: log + log[:88] + b"\xff" + log[89:], Stop.BAD_POSITION),
    ],
)
def test_stops(make: Callable[[], Walker], change: Callable[[bytes], bytes], stop: Stop) -> None:
    """T1: an old record at another place (BAD_POSITION) is not taken for one of this place."""
    good = log_of((message(), 0))
    log = change(good)
    walk = make().walk(log, 0, len(log), 0, check_crc=True)
    assert (walk.stop, walk.position, walk.count) == (stop, len(good), 1)


@walkers
def test_checksums(make: Callable[[], Walker]) -> None:
    log = bytearray(log_of((message(properties=props(TAGS="a")), 0), append_crc=True))

    def stop(check_crc: bool, force: bool) -> Stop:
        return make().walk(log, 0, len(log), 0, check_crc=check_crc, force_crc_property=force).stop

    assert stop(True, True) == Stop.END
    log[40] ^= 1  # the born timestamp: only the whole-record checksum covers it
    assert stop(True, False) == Stop.END
    assert stop(True, True) == Stop.BAD_CRC
    assert stop(False, True) == Stop.END
    log[100] ^= 1  # the body
    assert stop(True, False) == Stop.BAD_CRC


@walkers
def test_record_checksum_is_missing(make: Callable[[], Walker]) -> None:
    log = log_of((message(), 0))
    assert make().walk(log, 0, len(log), 0, check_crc=True, force_crc_property=True).stop == Stop.BAD_CRC


@walkers
def test_limit_and_going_on(make: Callable[[], Walker]) -> None:
    log = log_of(*((message(), number) for number in range(5)))
    first = make().walk(log, 0, len(log), 0, check_crc=True, limit=3)
    assert (first.stop, first.count) == (Stop.ROWS_FULL, 3)
    second = make().walk(log, first.position, len(log), 0, check_crc=True, limit=2)
    assert (second.stop, second.count, second.runs()[0].first_queue_offset) == (Stop.END, 2, 3)
    empty = make().walk(log, len(log), len(log), 0, check_crc=True)
    assert (empty.stop, empty.count, empty.last_offset, empty.runs(), empty.rows()) == (Stop.END, 0, -1, [], [])


@walkers
def test_delivery_time_in_the_schedule_topic(make: Callable[[], Walker]) -> None:
    properties = props(DELAY="2", TAGS="TagA", KEYS="a  b", UNIQ_KEY="u")
    log = log_of((message(SCHEDULE_TOPIC, 1, properties), 0), (message("Other", 1, properties), 0))
    rows = make().walk(log, 0, len(log), 0, check_crc=True, delay_levels=LEVELS).rows()
    assert [row.tags_code for row in rows] == [NOW + 5000, 2598919]
    assert (rows[0].unique_key, rows[0].keys, rows[0].topic) == ("u", ["a", "b"], SCHEDULE_TOPIC)


@walkers
def test_resync_finds_the_next_whole_record(make: Callable[[], Walker]) -> None:
    log = log_of((message(), 0), (message(), 1), (message(), 2))
    size = len(log) // 3
    walker = make()
    assert walker.resync(log, 0, len(log), 0) == 0
    assert walker.resync(log, 1, len(log), 0) == size
    damaged = log[:size] + log[size : 2 * size].replace(b"body", b"BODY") + log[2 * size :]
    assert walker.resync(damaged, 1, len(log), 0) == 2 * size
    assert walker.resync(log, 1, len(log), 7) == -1
    assert walker.resync(log, 2 * size + 1, len(log), 0) == -1


@walkers
def test_an_index_file_that_fills_up_is_gone_on_with(make: Callable[[], Walker]) -> None:
    """Rollbacks and records before ``skip_below`` are left out; prepared records are indexed."""
    keys = props(UNIQ_KEY="u", KEYS=" k1  k2 ")
    items = [message(properties=keys), message(properties=keys, sys_flag=12), message(properties=keys, sys_flag=4)]
    log = log_of(*((item, 0) for item in items))
    walk = make().walk(log, 0, len(log), 0, check_crc=True)
    index = bytearray(file_size(3, 5))
    assert walk.index_into(index, 3, 5) == (2, 1)
    index = bytearray(file_size(3, 5))
    assert walk.index_into(index, 3, 5, 2, 1) == (3, 0)
    assert IndexHeader.unpack(index).index_count == 3
    index = bytearray(file_size(3, 5))
    assert walk.index_into(index, 3, 5, skip_below=1) == (3, 0)
    assert IndexHeader.unpack(index).index_count == 4


@walkers
def test_a_mapping_can_be_walked_and_closed(make: Callable[[], Walker]) -> None:
    with mmap.mmap(-1, 4096) as mapping:
        log = log_of((message(), 0))
        mapping[: len(log)] = log
        walk = make().walk(mapping, 0, 4096, 0, check_crc=True)
        assert (walk.count, walk.stop) == (1, Stop.ZERO)
        del walk


def test_compiled_walker_checks_its_range() -> None:
    for begin, end in ((-1, 5), (0, 11)):
        with pytest.raises(ValueError, match="not inside"):
            COMPILED.walk(bytes(10), begin, end, 0, check_crc=True)
    log = log_of((message(), 0))
    with pytest.raises(ValueError, match="no index file"):
        COMPILED.walk(log, 0, len(log), 0, check_crc=True).index_into(bytearray(50), 3, 5)


def test_the_readable_modules_do_without_numpy() -> None:
    """It costs 25 MB: a quiet store stays small, and so does one that has loaded the compiled walker."""
    code = (
        "import sys, tandemmq.store.format.walker as w, tandemmq.store.format.batch, tandemmq.store.format.checkpoint\n"
        "import tandemmq.store.format.message_id\n"
        "w.python_walker(), w.compiled_walker()\n"
        "print([name for name in ('numpy',) if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
