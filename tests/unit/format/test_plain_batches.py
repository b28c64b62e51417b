"""The quick look at an encoded batch: what it calls plain has nothing that the broker's own look would refuse."""

import mmap
import weakref
from collections.abc import Callable, Sequence

import pytest

from tandemmq.store.broker import rules
from tandemmq.store.broker.errors import IllegalMessage
from tandemmq.store.format.batch import BatchWriter, compiled_batch_writer, encode_client_batch, python_batch_writer
from tandemmq.store.format.host import Host
from tandemmq.store.format.sysflag import HOSTS_V6

LIMIT = 100
HOST = Host("10.0.0.1", 10911).packed
PLAIN = [
    b"",
    b"a\x01b",
    b"KEYS\x01k\x02TAGS\x01WAIT\x02",
    b"x\x01DELAY",
    b"WAITS\x01true\x02",
    b"DELAYED\x011\x02",
    b"TIMER\x01x\x02",
    b"\x02\x02WAI\x02",
    b"TRAN\x01MSG\x02",
]
TO_LOOK_INTO = [
    b"WAIT\x01false\x02",
    b"a\x01b\x02WAIT\x01x",
    b"DELAY\x013\x02",
    b"DELAY\x010\x02",
    b"TRAN_MSG\x01true",
    b"\x02TIMER_DELAY_MS\x015\x02",
    b"TIMER_DELIVER_MS\x015",
    b"TIMER_DELAY_SEC\x011\x02k\x01v\x02",
    b"k\x01v\x00",
]


def _look(writer: BatchWriter, blob: bytes, flags: int = 0, crc: bool = False) -> tuple[int, int] | None:
    return writer.measure_plain(blob, 5, flags, crc, LIMIT)


@pytest.mark.parametrize("properties", PLAIN)
@pytest.mark.parametrize("flags", [0, HOSTS_V6])
@pytest.mark.parametrize("crc", [False, True])
def test_a_plain_batch_is_measured_as_ever(properties: bytes, flags: int, crc: bool) -> None:
    blob = encode_client_batch([(0, b"one", b"k\x01v\x02"), (0, bytes(LIMIT), properties), (0, b"", properties)])
    writer = compiled_batch_writer()
    found = _look(writer, blob, flags, crc)
    assert found is not None
    assert tuple(found) == tuple(python_batch_writer().measure(blob, 5, flags, crc))
    assert rules.check_batch(blob, LIMIT) == 3


@pytest.mark.parametrize("properties", TO_LOOK_INTO)
@pytest.mark.parametrize("last", [False, True])
def test_what_has_a_special_property_is_not_plain(properties: bytes, last: bool) -> None:
    others = [(0, b"body", b"k\x01v\x02")]
    blob = encode_client_batch([*others, (0, b"", properties), *([] if last else others)])
    assert _look(compiled_batch_writer(), blob) is None


def test_what_has_a_large_body_is_not_plain() -> None:
    assert _look(compiled_batch_writer(), encode_client_batch([(0, b"", b""), (0, bytes(LIMIT + 1), b"")])) is None
    with pytest.raises(IllegalMessage):
        rules.check_batch(encode_client_batch([(0, b"", b""), (0, bytes(LIMIT + 1), b"")]), LIMIT)


def test_what_is_no_whole_batch_is_not_plain() -> None:
    blob = encode_client_batch([(0, b"body", b"a\x01b\x02")] * 3)
    writer = compiled_batch_writer()
    assert all(_look(writer, blob[:size]) is None for size in range(len(blob)) if size % (len(blob) // 3))
    too_long = encode_client_batch([(0, b"", b"k\x01" + b"x" * 32_760)])
    assert _look(writer, too_long) is not None
    assert _look(writer, too_long, crc=True) is None


def test_the_readable_writer_leaves_the_look_to_others() -> None:
    assert _look(python_batch_writer(), encode_client_batch([(0, b"", b"")])) is None


@pytest.mark.parametrize("make", [python_batch_writer, compiled_batch_writer])
@pytest.mark.parametrize("crc", [False, True])
def test_a_measured_batch_is_written_as_one_that_is_not(make: Callable[[], BatchWriter], crc: bool) -> None:
    """Into two buffers in turn, since the compiled writer remembers the last one."""
    blob = encode_client_batch([(7, b"body", b"k\x01v"), (0, b"", b""), (1, bytes(50), b"TAGS\x01t\x02")])
    writer = make()
    measured = writer.measure(blob, 5, 0, crc)
    buffers = [bytearray(2000), bytearray(2000)]
    placed: list[Sequence[int]] = []
    for number in (0, 1, 0):
        placed.append(
            writer.write(
                blob,
                buffers[number],
                10 + 1000 * (len(placed) == 2),
                topic=b"topic",
                queue_id=1,
                queue_offset=5,
                physical_offset=1_000,
                sys_flag=0,
                born_timestamp=1,
                born_host=HOST,
                store_timestamp=2,
                store_host=HOST,
                reconsume_times=0,
                append_crc=crc,
                measured=measured if number == 0 else None,
            )
        )
    assert placed[0] == placed[1] == placed[2]
    size = measured[1]
    assert buffers[0][10 : 10 + size] == buffers[1][10 : 10 + size] == buffers[0][1010 : 1010 + size]


def test_a_file_is_not_kept_for_a_batch_that_was_written_to_it() -> None:
    """Kept, its blocks were not freed when it expired, until another file took a batch."""
    writer = compiled_batch_writer()
    blob = encode_client_batch([(0, b"one", b"k\x01v\x02")])
    file = mmap.mmap(-1, mmap.PAGESIZE)
    gone = weakref.ref(file)
    writer.write(
        blob,
        file,
        0,
        topic=b"topic",
        queue_id=0,
        queue_offset=0,
        physical_offset=0,
        sys_flag=0,
        born_timestamp=0,
        born_host=HOST,
        store_timestamp=0,
        store_host=HOST,
        reconsume_times=0,
    )
    del file
    assert gone() is None
