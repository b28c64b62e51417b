"""What a pull asks of a record: whether it is the one that its unit names, and of that tag."""

from itertools import product

from hypothesis import given
from hypothesis import strategies as st

from tandemmq.store.format.java import tags_code
from tandemmq.store.format.record import Message, decode_record, encode_record
from tandemmq.store.format.record_identity import behind_topic, shows_tags_code
from tests.unit.format.logs import V4, V6, messages, props


@given(messages(), st.integers(0, 200), st.integers(0, 1 << 40), st.integers(0, 1 << 40))
def test_a_record_is_the_one_that_is_named_and_no_other(message: Message, at: int, number: int, place: int) -> None:
    record = encode_record(message, number, place, 1_750_000_000_000)
    data, size, topic = bytes(at) + record + bytes(100), len(record), message.topic.encode()
    properties = decode_record(record).properties_bytes
    behind = behind_topic(data, at, topic, message.queue_id, number, place, size)
    assert data[behind : at + size] == len(properties).to_bytes(2, "big") + properties
    for wrong in (
        (topic + b"x", message.queue_id, number, place, size), (topic[:-1], message.queue_id, number, place, size),
        (topic, message.queue_id + 1, number, place, size), (topic, message.queue_id, number + 1, place, size),
        (topic, message.queue_id, number, place + 1, size), (topic, message.queue_id, number, place, size - 1),
    ):  # fmt: skip
        assert behind_topic(data, at, *wrong) == -1


def test_a_body_that_is_longer_than_the_record_is_none() -> None:
    """Whatever its length says, with hosts of either kind."""
    for born, store in product((V4, V6), repeat=2):
        record = encode_record(Message("orders", 1, b"body", born_host=born, store_host=store), 7, 0, 1)
        length_at = record.index(b"\x00\x00\x00\x04body")
        for length in (5, 1 << 16, 1 << 31, (1 << 32) - 1):
            data = record[:length_at] + length.to_bytes(4, "big") + record[length_at + 4 :]
            assert behind_topic(record, 0, b"orders", 1, 7, 0, len(record)) > 0
            assert behind_topic(data, 0, b"orders", 1, 7, 0, len(record)) == -1


tags = st.one_of(st.none(), st.text("abTAGS é", max_size=8))


@given(st.lists(st.tuples(tags, tags, st.booleans()), max_size=20))
def test_a_glance_sees_the_tag_of_each_record(records: list[tuple[str | None, str | None, bool]]) -> None:
    """Of one after the other, with neighbours before and behind that do not matter."""
    neighbour = props(TAGS="other")
    for tag, wrong, ended in records:
        own = props(KEYS="k", **({} if tag is None else {"TAGS": tag}))
        own = own if ended else own.removesuffix(b"\2")
        data = neighbour + own + neighbour
        code, other = (0 if one is None else tags_code(one) for one in (tag, wrong))
        for _ in range(2):
            assert shows_tags_code(data, len(neighbour), len(neighbour) + len(own), code)
            assert shows_tags_code(data, len(neighbour), len(neighbour) + len(own), other) is (code == other)
