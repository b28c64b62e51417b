"""Filters: tags, and conditions over properties."""

import sqlite3
import time
from collections.abc import Iterator

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tandemmq.common.errors import Kind
from tandemmq.store.delivery.errors import BadFilter
from tandemmq.store.delivery.filters.operands import number_of
from tandemmq.store.delivery.filters.patterns import compile_pattern
from tandemmq.store.delivery.filters.subscriptions import parse
from tandemmq.store.delivery.port import EVERYTHING, FilterKind, Subscription
from tandemmq.store.format.java import java_hash


def matches(expression: str, **properties: str) -> bool:
    return parse(Subscription(expression, FilterKind.SQL)).matches(properties)


def refusal(expression: str) -> BadFilter:
    with pytest.raises(BadFilter) as caught:
        parse(Subscription(expression, FilterKind.SQL))
    assert caught.value.kind is Kind.BAD_FILTER
    return caught.value


# -- tags -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("expression", ["*", "", " ", "a || *"])
def test_every_message_is_one_without_a_tag_to_look_for(expression: str) -> None:
    found = parse(Subscription(expression))
    assert found is parse(EVERYTHING)
    assert found.by_tags_code(12) is True
    assert found.matches({})


def test_tags_are_told_apart_by_their_hash_and_then_by_themselves() -> None:
    found = parse(Subscription(" Aa ||b"))
    assert java_hash("Aa") == java_hash("BB")
    assert found.by_tags_code(java_hash("BB")) is None  # the same hash: the tag itself decides
    assert not found.matches({"TAGS": "BB"})
    assert found.matches({"TAGS": "Aa"})
    assert found.matches({"TAGS": "b"})
    assert found.by_tags_code(java_hash("c")) is False
    assert not found.matches({})


def test_a_negative_hash_is_found_whatever_its_sign_extension() -> None:
    found = parse(Subscription("orders-10"))
    code = java_hash("orders-10")
    assert code < 0
    assert found.by_tags_code(code) is None
    assert found.by_tags_code(code & 0xFFFF_FFFF) is None


# -- conditions -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("expression", "properties", "expected"),
    [
        ("a = 'x'", {"a": "x"}, True),
        ("a = 'it''s'", {"a": "it's"}, True),
        ("a <> 'x'", {"a": "y"}, True),
        ("a <> 'x'", {}, False),
        ("NOT a = 'x'", {}, False),
        ("a = 5", {"a": "5.0"}, True),
        ("a = '5'", {"a": "5.0"}, False),
        ("5 = a", {"a": "+5"}, True),
        ("a > 5", {"a": "abc"}, False),
        ("NOT (a > 5)", {"a": "abc"}, False),
        ("a > 5 OR b = 'x'", {"a": "abc", "b": "x"}, True),
        ("a >= 9007199254740993", {"a": "9007199254740992"}, False),
        ("a < -1.5e1", {"a": "-16"}, True),
        ("-a > 5", {"a": "-6"}, True),
        ("a > b", {"a": "10", "b": "9"}, True),
        ("a = b", {"a": "1", "b": "1.0"}, False),
        ("a = b", {}, False),
        ("a BETWEEN 1 AND 3 AND b NOT BETWEEN 1 AND 3", {"a": "3", "b": "4"}, True),
        ("a IN ('x', 'y''s')", {"a": "y's"}, True),
        ("a NOT IN ('x')", {"a": "y"}, True),
        ("a NOT IN ('x')", {}, False),
        ("a IS NULL", {}, True),
        ("a IS NOT NULL and a is not null", {"a": ""}, True),
        ("(a = 1) IS NULL", {}, True),
        ("a = TRUE", {"a": "TRUE"}, True),
        ("a = FALSE", {"a": "no"}, True),
        ("a", {"a": "true"}, True),
        ("NOT a", {"a": "true"}, False),
        ("TRUE", {}, True),
        ("FALSE OR NULL", {}, False),
        ("TAGS IS NOT NULL AND TAGS IN ('t1', 't2')", {"TAGS": "t2"}, True),
        ("_a$1 = 1 /* so */ -- it is", {"_a$1": "1"}, True),
        ("A = 1", {"a": "1"}, False),
        ("a CONTAINS 'b'", {"a": "abc"}, True),
        ("a NOT STARTSWITH 'b' AND a ENDSWITH 'c'", {"a": "abc"}, True),
        ("a LIKE 'a_c%' AND a NOT LIKE 'x%'", {"a": "abcd"}, True),
        ("a LIKE '50!%' ESCAPE '!'", {"a": "50%"}, True),
        ("like = 1 AND escape = 2", {"like": "1", "escape": "2"}, True),
        ("a = 1\n\tOR\r\n b = 2", {"b": "2"}, True),
        ("a = 1 = TRUE", {"a": "1"}, True),
    ],
)
def test_conditions(expression: str, properties: dict[str, str], expected: bool) -> None:
    assert matches(expression, **properties) is expected


@pytest.mark.parametrize(
    ("expression", "line", "column"),
    [
        ("", 1, 1),
        ("  ", 1, 1),
        ("a = ", 1, 5),
        ("a == 5", 1, 4),
        ("a > 5 AND\n  b > 'x'", 2, 7),
        ("a IN (1)", 1, 7),
        ("5 IN ('x')", 1, 1),
        ("a = NULL", 1, 5),
        ("a = 'x", 1, 5),
        ("a > TRUE", 1, 5),
        ("a BETWEEN 3 AND 1", 1, 11),
        ("'x' OR a", 1, 1),
        ("a = 1 rubbish", 1, 7),
        ("a = 01", 1, 5),
        ("a = 99999999999999999999", 1, 5),
        ("a = 1e999", 1, 5),
        ("a LIKE 'x!' ESCAPE '!'", 1, 8),
        ("a LIKE 'x' ESCAPE 'no'", 1, 19),
        ("a ISNULL", 1, 3),
        ("AND", 1, 1),
        ("5 = TRUE", 1, 5),
        ("größe = 1", 1, 3),
        ("a = 1;", 1, 6),
    ],
)
def test_a_bad_condition_is_refused_with_its_place(expression: str, line: int, column: int) -> None:
    for _ in range(2):  # the second time it is remembered
        message = str(refusal(expression))
        assert f"at line {line}, column {column}: " in message
        shown, caret = message.split("\n")[1:]
        assert caret == " " * (3 + column) + "^"
        assert shown[4:] == (expression.splitlines() or [""])[line - 1].expandtabs(1)


def test_the_place_is_shown_in_a_long_line_too() -> None:
    message = str(refusal("a = 1 AND " * 100 + "b >> 1"))
    shown, caret = message.split("\n")[1:]
    assert shown[len(caret) - 1 - 3 : len(caret)] == "b >>"


BOMBS = {
    "long": "a = 1 OR " * 500 + "a = 1",
    "nested": "(" * 1000 + "a = 1" + ")" * 1000,
    "open": "(" * 4096,
    "denied": "NOT " * 1000 + "a",
    "negative": "-" * 4000 + "a > 1",
    "compared": "TRUE" + " = TRUE" * 500,
    "quotes": "'" * 4095,
    "comment": "/" + "*" * 4090,
}


@pytest.mark.parametrize("name", BOMBS)
def test_bombs_are_refused(name: str) -> None:
    refusal(BOMBS[name])


def test_what_is_just_within_the_limits_works() -> None:
    assert matches("(" * 62 + "a = 1" + ")" * 62, a="1")
    assert matches("a = 1 OR " * 454 + "a = 2", a="2")


@pytest.mark.slow
@settings(max_examples=300)
@given(
    st.lists(
        st.sampled_from(
            ["a", "b", "'", "''", "'x'", "1", "1.5", "=", "<>", "<", "(", ")", ",", " AND ", " OR ", " NOT "]
        )
        | st.sampled_from([" IN ", " IS ", " NULL ", " LIKE ", " BETWEEN ", "TRUE", "-", "+", "--", "/*", "*/", "\n"])
        | st.characters(),
        max_size=20,
    ).map("".join),
    st.dictionaries(st.sampled_from("ab"), st.text(max_size=5)),
)
def test_any_text_is_a_filter_or_a_typed_refusal(expression: str, properties: dict[str, str]) -> None:
    try:
        found = parse(Subscription(expression, FilterKind.SQL))
    except BadFilter:
        assert "column" in str(refusal(expression))
    else:
        assert found.matches(properties) in (True, False)


# -- against SQLite, which has the same three-valued logic ------------------------------------------------------------

Pair = tuple[str, str]
"""The same condition for us and for SQLite, where num() makes a property a number."""
NAMES, TEXTS = st.sampled_from("abc"), st.sampled_from(["x", "y", "it''s", "5", "%", "x_", "", "true"])
NUMBERS = st.sampled_from(["0", "5", "-5", "2.5", "1e1"])
PATTERNS = st.text("x_%yi", max_size=5)


def same(text: str) -> Pair:
    return text, text


LEAVES: st.SearchStrategy[Pair] = st.one_of(
    st.builds(lambda n, o, v: same(f"{n} {o} '{v}'"), NAMES, st.sampled_from(["=", "<>"]), TEXTS),
    st.builds(
        lambda n, o, v: (f"{n} {o} {v}", f"num({n}) {o} {v}"),
        NAMES, st.sampled_from(["=", "<>", "<", "<=", ">", ">="]), NUMBERS,
    ),
    st.builds(lambda n, o, m: (f"{n} {o} {m}", f"num({n}) {o} num({m})"), NAMES, st.sampled_from(["<", ">="]), NAMES),
    st.builds(lambda n, o, m: same(f"{n} {o} {m}"), NAMES, st.sampled_from(["=", "<>"]), NAMES),
    st.builds(lambda n, o: same(f"{n} {o}"), NAMES, st.sampled_from(["IS NULL", "IS NOT NULL"])),
    st.builds(
        lambda n, o, vs: same(f"{n} {o} ({', '.join(vs)})"),
        NAMES, st.sampled_from(["IN", "NOT IN"]), st.lists(TEXTS.map("'{}'".format), min_size=1, max_size=3),
    ),
    st.builds(
        lambda n, o: (f"{n} {o} -5 AND 5", f"num({n}) {o} -5 AND 5"),
        NAMES, st.sampled_from(["BETWEEN", "NOT BETWEEN"]),
    ),
    st.builds(lambda n, o, p: same(f"{n} {o} '{p}'"), NAMES, st.sampled_from(["LIKE", "NOT LIKE"]), PATTERNS),
    st.sampled_from([same("TRUE"), same("FALSE"), same("NULL")]),
)  # fmt: skip


def joined(word: str) -> st.SearchStrategy[Pair]:
    return st.builds(
        lambda one, other: (f"{one[0]} {word} {other[0]}", f"{one[1]} {word} {other[1]}"), CONDITIONS, CONDITIONS
    )


CONDITIONS: st.SearchStrategy[Pair] = st.deferred(
    lambda: st.one_of(
        LEAVES,
        joined("AND"),
        joined("OR"),
        CONDITIONS.map(lambda pair: (f"NOT {pair[0]}", f"NOT {pair[1]}")),
        CONDITIONS.map(lambda pair: (f"({pair[0]})", f"({pair[1]})")),
    )
)


@pytest.fixture(scope="module")
def database() -> Iterator[sqlite3.Connection]:
    connection = sqlite3.connect(":memory:")
    connection.create_function("num", 1, lambda text: None if text is None else number_of(text))
    connection.execute("PRAGMA case_sensitive_like = ON")
    yield connection
    connection.close()


@settings(max_examples=500)
@given(pair=CONDITIONS, values=st.tuples(*[st.none() | TEXTS.map(lambda text: text.replace("''", "'")) | NUMBERS] * 3))
@example(pair=same("NOT a = 'x' AND b = 'x' OR c = 'x'"), values=("x", "x", "x"))
def test_conditions_are_true_where_sqlite_says_so(
    database: sqlite3.Connection, pair: Pair, values: tuple[str | None, ...]
) -> None:
    query = f"SELECT {pair[1]} FROM (SELECT ? AS a, ? AS b, ? AS c)"
    expected = database.execute(query, values).fetchone()[0] == 1
    properties = {name: value for name, value in zip("abc", values, strict=True) if value is not None}
    try:
        found = matches(pair[0], **properties)
    except BadFilter:
        found = expected  # too long or too deep, which has tests of its own
        assert any(word in str(refusal(pair[0])) for word in ("deep", "characters"))
    assert found is expected


# -- numbers and patterns -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("text", ["", " 5", "5 ", "1_0", "٣", "nan", "inf", "0x10", "5L", "1e", ".", "+", "--5"])
def test_what_is_no_number(text: str) -> None:
    assert number_of(text) is None


@pytest.mark.parametrize(
    ("text", "number"),
    [("5", 5), ("+5", 5), ("-0", 0), ("5.", 5.0), (".5", 0.5), ("1E2", 100.0), ("1.5d", 1.5), ("9" * 30, 1e30)],
)
def test_what_is_a_number(text: str, number: float) -> None:
    assert number_of(text) == number


def naive(text: str, pattern: str) -> bool:
    if not pattern:
        return not text
    if pattern[0] == "%":
        return any(naive(text[at:], pattern[1:]) for at in range(len(text) + 1))
    return bool(text) and pattern[0] in ("_", text[0]) and naive(text[1:], pattern[1:])


@given(st.text("ab%\n", max_size=8), st.text("ab_%", max_size=8))
def test_like_is_what_it_is_by_definition(text: str, pattern: str) -> None:
    assert compile_pattern(pattern)(text) is naive(text, pattern)


def test_like_does_not_try_again() -> None:
    like = compile_pattern("%a" * 1000 + "%b")
    begun = time.process_time()
    assert not like("a" * 30_000)
    assert time.process_time() - begun < 5  # a matcher that backtracks would not end at all
