"""Java's text: hashes, decoding, properties."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tandemmq.store.format import properties
from tandemmq.store.format.java import decode_utf8, index_hash, index_key, java_hash, tags_code
from tandemmq.store.format.properties import IllegalProperty
from tests.unit.format.logs import property_bytes, text


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("", 0),
        ("TagA", 2598919),
        ("TopicTest#Key1", -1656937772),
        ("polygenelubricants", -2147483648),
        ("中文", 646394),
        ("😀", 1772899),
        ("TagABCDEF", -1105932195),
    ],
)
def test_hash_vectors(value: str, expected: int) -> None:
    assert java_hash(value) == expected
    assert tags_code(value) == expected


def test_index_hash_of_the_lowest_int_is_0() -> None:
    assert index_hash("polygenelubricants") == 0
    assert index_hash(index_key("TopicTest", "Key1")) == 1656937772
    assert tags_code(None) == 0


@pytest.mark.parametrize(
    ("data", "replacements"),
    [
        (b"\xff", 1),
        (b"\xc0\x80", 2),
        (b"\xed\xa0\x80", 1),
        (b"\xed\xa0", 1),
        (b"\xed\xa0A", 1),
        (b"\xe1\x80", 1),
        (b"\xf0\x9f\x98", 1),
        (b"\xf4\x90\x80\x80", 4),
        (b"\xe0\x80\x80", 3),
    ],
)
def test_malformed_utf8_as_java_replaces_it(data: bytes, replacements: int) -> None:
    """The counts are those of Java's String constructor; Python alone makes three of ED A0 80."""
    assert decode_utf8(data).count("�") == replacements


@given(st.dictionaries(text.filter(bool), text.filter(bool), max_size=5), st.booleans())
def test_properties_round_trip(mapping: dict[str, str], trailing: bool) -> None:
    """Both endings are read alike."""
    data = properties.encode(mapping, trailing)
    assert properties.decode(data) == mapping
    assert data.endswith(b"\x02") is bool(mapping and trailing)


def test_parser_rules() -> None:
    data = "a\x011\x02\x02b\x02\x01c\x02d\x01\x02a\x012\x01x\x02e\x01🚀".encode()
    assert properties.decode(data) == {"a": "2\x01x", "e": "🚀"}


def test_t17_separators_are_refused() -> None:
    """There is no escaping: text with 01 or 02 would come back as other properties."""
    for name, value in [("a\x01", "b"), ("a", "b\x02c"), ("", "b"), ("a", "\ud800")]:
        with pytest.raises(IllegalProperty):
            properties.check_text(name, value)
        with pytest.raises(IllegalProperty):
            properties.encode({"x": "y", name: value})
    properties.check_text("a", "")


@given(property_bytes)
def test_remove_takes_out_and_leaves_the_rest(data: bytes) -> None:
    expected = properties.decode(data)
    expected.pop("TAGS", None)
    assert properties.decode(properties.remove(data, "TAGS")) == expected


def test_append_adds_the_missing_separator() -> None:
    assert properties.append(b"a\x011", {"b": "2"}) == b"a\x011\x02b\x012\x02"
    assert properties.append(b"", {"b": "2"}) == b"b\x012\x02"
