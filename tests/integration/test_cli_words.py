"""How the command line reads times and writes times, sizes, tables and errors."""

import json

import pytest

from tandemmq.cli.talk.failures import CallFailed, CommandFailed, Failure, NotThere, from_tandem
from tandemmq.cli.talk.moments import BadMoment, parse_duration, parse_moment, show_bytes, show_moment, show_seconds
from tandemmq.cli.talk.output import Output, printable
from tandemmq.store.log.errors import StoreLocked

NOW = 1_800_000_000_000


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("now", NOW),
        ("0", 0),
        ("1700000000000", 1_700_000_000_000),
        ("10m", NOW - 600_000),
        ("1.5h", NOW - 5_400_000),
        ("250ms", NOW - 250),
        ("2d", NOW - 2 * 86_400_000),
        ("2023-11-14T22:13:20+00:00", 1_700_000_000_000),
        ("2023-11-14 22:13:20.5Z", 1_700_000_000_500),
    ],
)
def test_a_time_is_read(text: str, expected: int) -> None:
    assert parse_moment(text, NOW) == expected


@pytest.mark.parametrize("text", ["", "yesterday", "10", "-5m", "10 m", "2023-13-01", "1e3"])
def test_what_is_no_time_is_refused_with_the_forms_that_are(text: str) -> None:
    if text == "10":  # milliseconds, however few
        assert parse_moment(text, NOW) == 10
        return
    with pytest.raises(BadMoment, match="milliseconds since 1970"):
        parse_moment(text, NOW)


@pytest.mark.parametrize(("text", "expected"), [("250ms", 250), ("10s", 10_000), ("1.5h", 5_400_000)])
def test_a_duration_is_read(text: str, expected: int) -> None:
    assert parse_duration(text) == expected


def test_a_duration_without_a_unit_is_asked_for_it() -> None:
    with pytest.raises(BadMoment, match="10 of what. Write a unit after it: 10s, 10m, 10h, 10d, or 10ms"):
        parse_duration("10")
    with pytest.raises(BadMoment, match="'soon' is no duration; write it as 250ms, 10s, 5m"):
        parse_duration("soon")


def test_a_shown_time_is_read_back_to_the_millisecond() -> None:
    assert parse_moment(show_moment(1_700_000_000_123)) == 1_700_000_000_123
    assert show_moment(0) == "-"


@pytest.mark.parametrize(
    ("amount", "expected"),
    [(0, "0 bytes"), (999, "999 bytes"), (1000, "1.0 kB"), (67_108_864, "67.1 MB"), (3e12, "3.0 TB")],
)
def test_sizes_in_words(amount: float, expected: str) -> None:
    assert show_bytes(int(amount)) == expected


@pytest.mark.parametrize(("seconds", "expected"), [(0.0000123, "12 µs"), (0.0456, "46 ms"), (12.34, "12.3 s")])
def test_durations_in_words(seconds: float, expected: str) -> None:
    assert show_seconds(seconds) == expected


def test_text_of_a_message_cannot_steer_the_terminal() -> None:
    assert printable("a\x1b[2Jb\x07\r\u202e") == "a\\x1b[2Jb\\x07\\r\\u202e"
    assert printable("Grüße\n\t日本") == "Grüße\n\t日本"


@pytest.mark.parametrize(
    ("error", "line"),
    [
        (CommandFailed("no port is free"), "tandem: no port is free"),
        (NotThere("no message\nhas it"), "tandem: no message has it"),
        (
            StoreLocked("Another process has it.", remedy="Stop it."),
            "tandem: Another process has it. (Stop it.)",
        ),
        (
            CallFailed(Failure("No such topic.", "NOT_FOUND", "NO_MATCHED_LOGIC_QUEUE")),
            "tandem: No such topic.",
        ),
    ],
)
def test_an_error_is_one_line_and_one_document(error: CommandFailed, line: str) -> None:
    failure = from_tandem(error)
    assert failure.line() == line
    assert json.loads(failure.document())["error"]["message"] == failure.message
    assert "\n" not in failure.document()


def test_a_table_is_aligned_and_uncut_where_nobody_watches(capsys: pytest.CaptureFixture[str]) -> None:
    Output(as_json=False).table(("topic", "next"), [("t" * 150, 1), ("b", 12_345)])
    lines = capsys.readouterr().out.splitlines()
    assert lines == ["topic".ljust(150) + "    next", "t" * 150 + "       1", "b".ljust(150) + "  12,345"]


def test_a_table_fits_the_terminal_of_a_person(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("tandemmq.cli.talk.output.is_terminal", lambda: True)
    monkeypatch.setenv("COLUMNS", "60")
    Output(as_json=False).table(("topic", "next"), [("t" * 150, 1), ("b", 12_345)])
    printed = capsys.readouterr().out
    assert max(map(len, printed.splitlines())) <= 60
    assert printed.count("t") - "topic next".count("t") == 150
