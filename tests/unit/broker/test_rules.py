"""What a message must be like, at the edges."""

import pytest

from tandemmq.store.broker import rules
from tandemmq.store.broker.errors import IllegalMessage, NotSupported, PropertiesTooLong
from tandemmq.store.broker.tags import parse_tags
from tandemmq.store.format.batch import encode_client_batch
from tandemmq.store.format.java import tags_code


def allowed(name: str) -> bool:
    try:
        rules.check_topic_name(name)
    except IllegalMessage:
        return False
    return True


@pytest.mark.parametrize("topic", ["a", "t" * 127, "%RETRY%" + "g" * 248, "%DLQ%" + "g" * 250, "A-z_0|9%"])
def test_good_topics(topic: str) -> None:
    assert allowed(topic)


@pytest.mark.parametrize("topic", ["", "t" * 128, "%RETRY%" + "g" * 249, "a b", "a/b", "a\n", "ä", "."])
def test_bad_topics(topic: str) -> None:
    assert not allowed(topic)


def test_wait_is_taken_out_and_understood() -> None:
    for text, waits in (("false", False), ("FALSE", False), ("true", True), ("", True), ("0", True)):
        given = {"WAIT": text, "a": "b"}
        assert rules.take_wait(given) is waits
        assert given == {"a": "b"}
    assert rules.take_wait({})


def test_properties_of_exactly_the_limit() -> None:
    assert len(rules.encode_properties({"a": "x" * 97}, 100)) == 100
    with pytest.raises(PropertiesTooLong):
        rules.encode_properties({"a": "x" * 98}, 100)
    with pytest.raises(PropertiesTooLong):
        rules.encode_properties({"a": "ä" * 49}, 100)


def test_a_batch_is_looked_into_only_where_it_must_be() -> None:
    body_only = encode_client_batch([(0, b"\x02DELAY\x013\x02", b"a\x01b\x02")])
    rules.check_batch(body_only, 100)
    part_of_a_name = encode_client_batch([(0, b"", b"MY_DELAY\x013\x02")])
    rules.check_batch(part_of_a_name, 100)
    for text in (b"DELAY\x013\x02", b"DELAY\x013", b"x\x01y\x02TRAN_MSG\x01true\x02"):
        with pytest.raises(NotSupported):
            rules.check_batch(encode_client_batch([(0, b"", b"x\x01y"), (0, b"b", text)]), 100)
    rules.check_batch(encode_client_batch([(0, b"", b"DELAY\x010\x02")]), 100)
    with pytest.raises(IllegalMessage):
        rules.check_batch(encode_client_batch([(0, bytes(101), b"")]), 100)


@pytest.mark.parametrize("at", [0, 1, 2])
def test_properties_in_a_batch_may_not_end_in_a_zero_byte(at: int) -> None:
    """Recovery takes such a record for a torn one: an acknowledged message would be gone after a crash."""
    texts = [b"a\x01b\x02"] * 3
    rules.check_batch(encode_client_batch([(0, b"\0", b"a\x01b\0\x02")] * 3), 100)
    texts[at] = b"a\x01b\0"
    with pytest.raises(IllegalMessage, match="zero byte"):
        rules.check_batch(encode_client_batch([(0, b"", text) for text in texts]), 100)


@pytest.mark.parametrize("size", range(7, 56, 7))
def test_a_malformed_batch_is_left_to_the_log(size: int) -> None:
    whole = encode_client_batch([(0, b"body", b"a\x01b\x02"), (0, b"body", b"")])
    assert rules.check_batch(whole, 100) == 2
    assert rules.check_batch(whole[:size], 100) is None


def test_tag_expressions() -> None:
    for everything in ("", "*", " * ", "A || *", "||", " "):
        assert parse_tags(everything) is None
    filtered = parse_tags("A||B || A")
    assert filtered is not None
    assert filtered.tags == {"A", "B"}
    negative = parse_tags("polygenelubricants")
    assert negative is not None
    assert negative.may_match(tags_code("polygenelubricants"))
    assert not negative.may_match(tags_code("A"))
    assert not negative.may_match(0)
