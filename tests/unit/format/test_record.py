"""Records: vectors A, B, C, D, J of the format's reference, round trips, and the traps around them."""

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tandemmq.store.format import sysflag
from tandemmq.store.format.crc import crc31
from tandemmq.store.format.host import Host
from tandemmq.store.format.record import (
    MAGIC_V1,
    CorruptRecord,
    Message,
    PropertiesOverflow,
    TopicTooLong,
    decode_record,
    encode_blank,
    encode_record,
    record_size,
    verify_crc_property,
)
from tests.stored_messages import message_of
from tests.unit.format.logs import V4, V6, messages, props

UNIQ_KEY = "C0A8001430391B2C3D4E47B760000007"
BORN = Host("192.168.0.20", 50000)
STORE = Host("192.168.0.10", 10911)
PROPERTIES = props(KEYS="Key1", UNIQ_KEY=UNIQ_KEY, TAGS="TagA")
STORED_AT = 1_700_000_000_123

VECTOR_A = bytes.fromhex(
    "000000a7daa320a73610a6860000000000000000000000000000000000000000"
    "00000000000000000000018bcfe56800c0a800140000c3500000018bcfe5687b"
    "c0a8000a00002a9f0000000000000000000000000000000568656c6c6f09546f"
    "70696354657374003e4b455953014b65793102554e49515f4b45590143304138"
    "3030313433303339314232433344344534374237363030303030303702544147"
    "53015461674102"
)
VECTOR_C = bytes.fromhex(
    "000000bbdaa320a73610a6860000000000000000000000000000000000000000"
    "00000000000000000000018bcfe56800c0a800140000c3500000018bcfe5687b"
    "c0a8000a00002a9f0000000000000000000000000000000568656c6c6f09546f"
    "7069635465737400524b455953014b65793102554e49515f4b45590143304138"
    "3030313433303339314232433344344534374237363030303030303702544147"
    "530154616741025f5f435243333223013934353530333532343102"
)
VECTOR_J = bytes.fromhex(
    "00000072daa320a7770659160000000200000000000000000000000000000000"
    "00000000000000100000018bcfe56800fe800000000000000000000000000001"
    "0000c3500000018bcfe5687bc0a8000a00002a9f000000000000000000000000"
    "00000002763609546f706963546573740000"
)


def vector_message(**changes: object) -> Message:
    message = Message("TopicTest", 0, b"hello", PROPERTIES, 0, 0, 1_700_000_000_000, BORN, STORE)
    for name, value in changes.items():
        setattr(message, name, value)
    return message


def test_vector_a_v1() -> None:
    assert encode_record(vector_message(), 0, 0, STORED_AT) == VECTOR_A
    record = decode_record(VECTOR_A)
    assert (record.size, record.magic, record.body_crc) == (167, MAGIC_V1, 0x3610A686)
    assert (record.topic, record.body, record.born_host, record.store_host) == ("TopicTest", b"hello", BORN, STORE)
    assert (record.tags, record.keys, record.unique_key) == ("TagA", ["Key1"], UNIQ_KEY)
    assert (record.born_timestamp, record.store_timestamp, record.is_v2) == (1_700_000_000_000, STORED_AT, False)


def test_vector_b_v2_for_topics_above_127_bytes() -> None:
    topic = "%RETRY%" + "g" * 123
    data = encode_record(vector_message(topic=topic), 0, 0, STORED_AT)
    assert len(data) == 289
    assert data[:12].hex() == "00000121daa320ab3610a686"
    assert data[93:99].hex() == "008225524554"
    assert decode_record(data).topic == topic


def test_vector_c_record_checksum() -> None:
    data = encode_record(vector_message(), 0, 0, STORED_AT, append_crc=True)
    assert data == VECTOR_C
    assert crc31(data[:-20]) == 1425305549
    assert verify_crc_property(data) is True
    assert verify_crc_property(VECTOR_A) is None
    assert verify_crc_property(data[:20] + b"\x01" + data[21:]) is False


def test_vector_d_blank() -> None:
    assert encode_blank(834).hex() == "00000342cbd43194"


def test_vector_j_ipv6_born_host_and_checksum_mask() -> None:
    message = Message("TopicTest", 2, b"v6", b"", 0, 0, 1_700_000_000_000, Host("fe80::1", 50000), STORE)
    assert encode_record(message, 0, 0, STORED_AT) == VECTOR_J
    assert decode_record(VECTOR_J).born_host == Host.parse("[fe80::1]:50000")


def test_checksum_drops_the_sign_bit() -> None:
    assert crc31(b"a") == 1756872259
    assert crc31(b"") == 0


def test_t13_ipv6_bits_follow_the_hosts() -> None:
    """A record that once had IPv6 hosts and is stored again with IPv4 ones: Java leaves the bits set."""
    record = decode_record(encode_record(vector_message(sys_flag=sysflag.HOSTS_V6 | 8), 0, 0, STORED_AT))
    assert record.sys_flag == 8
    assert record.store_host == STORE
    assert sysflag.with_hosts(0x38, born_v6=False, store_v6=True) == 0x28


def test_t16_v1_topic_of_128_to_255_bytes_is_read() -> None:
    """Java reads the length byte signed and fails."""
    head = encode_record(vector_message(topic="", body=b"", properties=b""), 0, 0, STORED_AT)[:-3]
    data = bytearray(head + bytes((200,)) + b"t" * 200 + b"\x00\x00")
    data[:4] = len(data).to_bytes(4, "big")
    record = decode_record(bytes(data))
    assert record.topic == "t" * 200
    assert record.encode() == data


def test_t28_separator_before_the_record_checksum() -> None:
    """Without 02 after the last property, the checksum would become part of its value."""
    data = encode_record(vector_message(properties=PROPERTIES[:-1]), 0, 0, STORED_AT, append_crc=True)
    assert data == VECTOR_C
    assert decode_record(data).tags == "TagA"
    assert verify_crc_property(data) is True


def test_a_checksum_that_came_with_the_message_is_replaced() -> None:
    message = vector_message(properties=b"__CRC32#\x01123\x02" + PROPERTIES)
    assert encode_record(message, 0, 0, STORED_AT, append_crc=True) == VECTOR_C
    assert record_size(message, append_crc=True) == len(VECTOR_C)


def test_limits() -> None:
    with pytest.raises(PropertiesOverflow):
        encode_record(vector_message(properties=bytes(32768)), 0, 0, 0)
    with pytest.raises(PropertiesOverflow):
        encode_record(vector_message(properties=b"\x02" * 32748), 0, 0, 0, append_crc=True)
    with pytest.raises(TopicTooLong):
        encode_record(vector_message(topic="t" * 32768), 0, 0, 0)
    assert decode_record(encode_record(vector_message(properties=b"\x02" * 32767), 0, 0, 0)).properties == {}


@given(messages(), st.booleans(), st.integers(0, 1 << 62))
def test_round_trip(message: Message, append_crc: bool, offset: int) -> None:
    data = encode_record(message, 7, offset, STORED_AT, append_crc)
    assert len(data) == record_size(message, append_crc)
    record = decode_record(b"xx" + data + b"yy", 2)
    assert record.encode() == data
    assert encode_record(message_of(record), 7, offset, STORED_AT, append_crc) == data
    assert (record.queue_offset, record.physical_offset, record.store_timestamp) == (7, offset, STORED_AT)
    assert (record.topic, record.body, record.born_host) == (message.topic, message.body, message.born_host)
    assert verify_crc_property(data) is (True if append_crc else None)


@pytest.mark.parametrize(
    ("at", "change", "reason"),
    [
        (4, b"\x00\x00\x00\x00", "magic code 00000000"),
        (0, b"\x00\x00\x00\x50", "TOTALSIZE 80"),
        (0, b"\x00\x00\x01\x00", "TOTALSIZE 256"),
        (84, b"\xff\xff\xff\xff", "BODYLENGTH -1"),
        (84, b"\x00\x00\x10\x00", "BODYLENGTH 4096"),
        (93, b"\xff", "TOPICLENGTH 255"),
        (103, b"\x00\x01", "PROPERTIESLENGTH 1"),
        (90, b"X", "checksum"),
    ],
)
def test_corrupt_records_say_why(at: int, change: bytes, reason: str) -> None:
    data = bytearray(VECTOR_A)
    data[at : at + len(change)] = change
    with pytest.raises(CorruptRecord, match=reason) as caught:
        decode_record(data)
    assert caught.value.at == 0


def test_body_checksum_is_optional_and_length_is_not() -> None:
    data = bytearray(VECTOR_A)
    data[90] ^= 1
    assert decode_record(data, verify=False).body == b"hemlo"
    with pytest.raises(CorruptRecord, match="fewer than any record"):
        decode_record(VECTOR_A[:90])


def test_host_rules() -> None:
    """IPv4-mapped addresses become IPv4, as in Java."""
    assert Host("::ffff:1.2.3.4", 5) == Host.parse("1.2.3.4:5")
    assert (
        Host.unpack(bytes(10) + b"\xff\xff\x01\x02\x03\x04" + struct.pack(">i", 5)).packed
        == b"\x01\x02\x03\x04\0\0\0\5"
    )
    assert str(V6) == "[fe80::1]:50000"
    assert str(V4) == "192.168.0.10:10911"
    assert Host.parse("[fe80::1%eth0]:1") == Host("fe80::1", 1)
    assert len({V4, Host.parse(str(V4)), V6}) == 2
    for wrong in ("1.2.3.4", "::1:80", "[1.2.3.4:80", "1.2.3.4:x", "host:80", ""):
        with pytest.raises(ValueError, match="not a"):
            Host.parse(wrong)
    with pytest.raises(ValueError, match="9 bytes"):
        Host.unpack(bytes(9))
