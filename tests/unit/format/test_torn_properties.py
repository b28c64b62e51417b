"""The checksum of a record covers its body only; a write torn behind it is found by the last byte of the last text."""

import pytest

from tandemmq.store.format.host import Host
from tandemmq.store.format.record import CorruptRecord, Message, decode_record, encode_record
from tandemmq.store.format.walker import Stop, Walker, compiled_walker, python_walker

HOST = Host.parse("127.0.0.1:10911")


@pytest.fixture(params=[python_walker, compiled_walker], ids=["python", "compiled"])
def walker(request: pytest.FixtureRequest) -> Walker:
    """Each walker in turn."""
    made: Walker = request.param()
    return made


@pytest.mark.parametrize("lost", [1, 7, 30])
def test_properties_whose_end_never_reached_the_disk_are_a_torn_record(walker: Walker, lost: int) -> None:
    """The last bytes are zeros, all lengths are right, and so is the checksum of the body."""
    message = Message("T", 0, b"body", b"KEYS\x01" + b"k" * 40 + b"\x02", 0, 0, 1, HOST, HOST)
    whole = encode_record(message, 0, 0, 2)
    torn = whole[:-lost] + bytes(lost)
    assert walker.walk(whole, 0, len(whole), 0, check_crc=True).count == 1
    walk = walker.walk(torn, 0, len(torn), 0, check_crc=True)
    assert (walk.count, walk.stop) == (0, Stop.BAD_CRC)
    assert decode_record(whole).encode() == whole
    with pytest.raises(CorruptRecord, match="never reached the disk"):
        decode_record(torn)


@pytest.mark.parametrize("lost", [3, 5])
def test_a_topic_whose_end_never_reached_the_disk_is_a_torn_record(walker: Walker, lost: int) -> None:
    """The length of the properties, which there are none of, is zero in any case."""
    whole = encode_record(Message("Topic", 0, b"body", b"", 0, 0, 1, HOST, HOST), 0, 0, 2)
    torn = whole[:-lost] + bytes(lost)
    walk = walker.walk(torn, 0, len(torn), 0, check_crc=True)
    assert (walk.count, walk.stop) == (0, Stop.BAD_CRC)
    with pytest.raises(CorruptRecord, match="the topic ends in a zero byte"):
        decode_record(torn)


def test_a_record_without_properties_is_whole(walker: Walker) -> None:
    """Its last two bytes are the length of the properties, zero."""
    whole = encode_record(Message("T", 0, b"body", b"", 0, 0, 1, HOST, HOST), 0, 0, 2)
    assert walker.walk(whole, 0, len(whole), 0, check_crc=True).count == 1
