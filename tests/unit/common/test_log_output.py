"""Log lines for people and for machines."""

import io
import json
import logging
import resource
from collections.abc import Iterator

import pytest

from tandemmq.common.errors import TandemError
from tandemmq.common.log_output import configure_logging, get_log
from tandemmq.common.processes.process import keep_freed_memory, raise_open_files_limit
from tandemmq.common.settings.server_settings import LogFormat, LogLevel


@pytest.fixture(autouse=True)
def _root_logger_restored() -> Iterator[None]:
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield
    root.handlers[:], root.level = handlers, level


def test_text_lines_show_event_and_values() -> None:
    stream = io.StringIO()
    configure_logging(form=LogFormat.TEXT, stream=stream)
    get_log("tandemmq.store.log.recovery").info("recovery finished", bytes=7, seconds=0.12345, path="a b")
    line = stream.getvalue()
    assert 'INFO    store.log.recovery     recovery finished  bytes=7 seconds=0.123 path="a b"\n' in line


def test_what_a_caller_says_cannot_steer_a_terminal_or_begin_a_line() -> None:
    stream = io.StringIO()
    configure_logging(form=LogFormat.TEXT, stream=stream)
    get_log("tandemmq.x").warning("wrong secret", user="eve\x1b[2J\n12:00 INFO \x9b\u202e")
    line = stream.getvalue()
    assert line.count("\n") == 1
    assert line.strip().isprintable()


def test_json_lines_are_objects_with_the_same_values() -> None:
    stream = io.StringIO()
    configure_logging(stream=stream)  # AUTO, and not a terminal
    try:
        raise ValueError("broken")
    except ValueError as error:
        get_log("tandemmq.x").failure("it failed", error, at=3)
    fields = json.loads(stream.getvalue())
    assert (fields["level"], fields["logger"], fields["event"], fields["at"]) == ("error", "x", "it failed", 3)
    assert "ValueError: broken" in fields["traceback"]
    assert fields["time"].endswith("Z")


def test_lines_below_the_level_are_not_written() -> None:
    stream = io.StringIO()
    configure_logging(LogLevel.WARNING, stream=stream)
    log = get_log("tandemmq.x")
    log.debug("no")
    log.info("no")
    log.warning("yes")
    log.error("yes")
    assert [json.loads(line)["event"] for line in stream.getvalue().splitlines()] == ["yes", "yes"]


def test_errors_explain_themselves() -> None:
    error = TandemError("disk full")
    assert error.explain() == "disk full"
    error.remedy = "free some space"
    assert error.explain() == "disk full (free some space)"
    assert TandemError().explain() == "TandemError"


def test_process_preparation_is_idempotent() -> None:
    assert raise_open_files_limit() == resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    assert keep_freed_memory() == keep_freed_memory()
