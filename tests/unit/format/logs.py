"""Random logs for the tests, and the two walkers."""

from hypothesis import strategies as st

from tandemmq.store.format import properties, sysflag
from tandemmq.store.format.host import Host
from tandemmq.store.format.record import BLANK_SIZE, Message, encode_blank, encode_record
from tandemmq.store.format.unit import SCHEDULE_TOPIC
from tandemmq.store.format.walker import Walk

V4 = Host("192.168.0.10", 10911)
V6 = Host("fe80::1", 50000)
LEVELS = (1000, 5000, 10_000)

text = st.text(st.characters(exclude_characters="\x01\x02", exclude_categories=["Cs"]), max_size=12)
keys = st.lists(st.sampled_from(["Aa", "BB", "k", "订单3", "🚀", "", "order-17", "polygenelubricants"]), max_size=4)
topics = st.sampled_from(
    ["T", "TopicTest", "订单", "%RETRY%" + "g" * 125, SCHEDULE_TOPIC, "TopicTesu", "a" * 127, "b" * 128]
)

pair = st.one_of(
    st.tuples(st.just("TAGS"), text),
    st.tuples(st.just("UNIQ_KEY"), text),
    st.tuples(st.just("KEYS"), keys.map(" ".join)),
    st.tuples(st.just("DELAY"), st.sampled_from(["0", "1", "2", "3", "99", "-1", "+2", "x", "007", "4294967297", "١"])),
    st.tuples(st.sampled_from(["WAIT", "TAG", "TAGSX", "KEYSKEYS", "UNIQ_KEYS", "DELAYED", "名", ""]), text),
)
segment = st.one_of(
    pair.map(lambda item: f"{item[0]}\x01{item[1]}".encode()),
    st.sampled_from(
        [
            b"",
            b"a",
            b"a\x01",
            b"\x01b",
            b"TAGS",
            b"TAGS\x01",
            b"KEYS\x01a\x01b",
            b"TAGS\x01\xff",
            b"UNIQ_KEY\x01\xed\xa0",
        ]
    ),
    st.binary(max_size=12).map(lambda data: b"TAGS\x01" + data),
)
property_bytes = (
    st.tuples(st.lists(segment, max_size=6), st.booleans())
    .map(lambda drawn: b"\x02".join(drawn[0]) + (b"\x02" if drawn[1] else b""))
    # A zero byte at the end counts as torn (Stop.BAD_CRC): see test_torn_properties.
    .filter(lambda data: not data.endswith(b"\0"))
)


@st.composite
def messages(draw: st.DrawFn) -> Message:
    """Any message: both versions, all host widths, all transaction types, property bytes good and bad."""
    return Message(
        topic=draw(topics),
        queue_id=draw(st.integers(0, 2)),
        body=draw(st.binary(max_size=40)),
        properties=draw(property_bytes),
        flag=draw(st.integers(-5, 5)),
        sys_flag=draw(st.sampled_from([0, 1, 4, 8, 12, 0x10, 0x30, 0x318])),
        born_timestamp=draw(st.integers(0, 1 << 40)),
        born_host=draw(st.sampled_from([V4, V6])),
        store_host=draw(st.sampled_from([V4, V6])),
        reconsume_times=draw(st.integers(0, 3)),
    )


@st.composite
def logs(draw: st.DrawFn) -> tuple[bytes, int]:
    """A log file and its base: records, then nothing, a blank, or zeros."""
    base = draw(st.sampled_from([0, 1 << 20, 1 << 40]))
    append_crc = draw(st.booleans())
    offsets: dict[tuple[str, int], int] = {}
    log = bytearray()
    for message in draw(st.lists(messages(), max_size=12)):
        queue = message.topic, message.queue_id
        offset = 0
        if sysflag.is_indexed_in_queue(message.sys_flag):
            offset = offsets.get(queue, 0) + draw(st.sampled_from([0, 0, 0, 0, 3]))
            offsets[queue] = offset + 1
        stored = draw(st.integers(1_700_000_000_000, 1_700_000_100_000))
        log += encode_record(message, offset, base + len(log), stored, append_crc)
    ending = draw(
        st.sampled_from(
            [b"", encode_blank(50), encode_blank(BLANK_SIZE), bytes(30), b"\x00" * 5, b"\x07" * 3, b"\x07" * 40]
        )
    )
    return bytes(log + ending), base


@st.composite
def damaged_logs(draw: st.DrawFn) -> tuple[bytes, int]:
    """A log with bytes changed here and there, perhaps cut."""
    log, base = draw(logs())
    data = bytearray(log)
    if data:
        for at, value in draw(st.lists(st.tuples(st.integers(0, len(data) - 1), st.integers(0, 255)), max_size=6)):
            data[at] = value
        if draw(st.booleans()):
            del data[draw(st.integers(0, len(data) - 1)) :]
    return bytes(data), base


def outcome(walk: Walk) -> tuple[object, ...]:
    """All that a walk found, for comparing."""
    return (
        walk.position,
        walk.stop,
        walk.count,
        walk.first_store_timestamp,
        walk.last_store_timestamp,
        walk.max_store_timestamp,
        walk.last_offset,
        walk.rows(),
        walk.runs(),
    )


def props(**pairs: str) -> bytes:
    """Encoded properties."""
    return properties.encode(pairs)
