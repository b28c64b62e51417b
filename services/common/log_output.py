"""Log output: readable lines on a terminal, one JSON object a line elsewhere.

Events have a short constant text and named values, never values inside the text, so that they can be searched::

    log = get_log(__name__)
    log.info("recovery finished", bytes=1048576, seconds=0.12)

    12:04:31.207 INFO  store.log.recovery   recovery finished  bytes=1048576 seconds=0.12
    {"time": "2026-01-31T12:04:31.207Z", "level": "info", "logger": "store.log.recovery", "event": ..., "bytes": ...}
"""

import json
import logging
import sys
import time
from typing import IO

from tandemmq.common.settings.server_settings import LogFormat, LogLevel

_STARTED = "serving"
"""What a service says when its start has come about."""
_HELD_SECONDS = 2.0
_VALUES = "tandem_values"
"""Attribute of a LogRecord that carries an event's named values."""


class Log:
    """A logger whose events carry named values."""

    __slots__ = ("_logger",)

    def __init__(self, logger: logging.Logger) -> None:
        self._logger = logger

    def debug(self, event: str, **values: object) -> None:
        """For those who look for a fault in TandemMQ itself."""
        self._write(logging.DEBUG, event, values)

    def info(self, event: str, **values: object) -> None:
        """What an operator wants to read once: states that change."""
        self._write(logging.INFO, event, values)

    def warning(self, event: str, **values: object) -> None:
        """Worked, but should be looked at."""
        self._write(logging.WARNING, event, values)

    def error(self, event: str, **values: object) -> None:
        """Did not work."""
        self._write(logging.ERROR, event, values)

    def failure(self, event: str, error: BaseException, **values: object) -> None:
        """Did not work and nobody expected it: with the traceback of `error`."""
        if self._logger.isEnabledFor(logging.ERROR):
            self._logger.error(event, exc_info=error, extra={_VALUES: values}, stacklevel=2)

    def _write(self, level: int, event: str, values: dict[str, object]) -> None:
        if self._logger.isEnabledFor(level):
            self._logger.log(level, event, extra={_VALUES: values}, stacklevel=3)


def get_log(module: str) -> Log:
    """The log of a module; call it with `__name__`."""
    return Log(logging.getLogger(module))


def configure_logging(
    level: LogLevel = LogLevel.INFO, form: LogFormat = LogFormat.AUTO, stream: IO[str] | None = None
) -> None:
    """Sends every logger of the process to one stream (stderr), in one form. Replaces what was configured before."""
    stream = sys.stderr if stream is None else stream
    as_text = form is LogFormat.TEXT or (form is LogFormat.AUTO and stream.isatty())
    handler = _HoldingHandler(stream) if _holding else logging.StreamHandler(stream)
    handler.setFormatter(TextFormatter() if as_text else JsonFormatter())
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level.name)


_holding = False


def hold_start_lines(*, wanted: bool) -> None:
    """Let the next `configure_logging` keep back what a start says, until it has come about.

    So a person whose service does not start reads why, and nothing else. Lines come out when the service serves, when
    something is worth a warning, and when the start takes long.
    """
    global _holding  # noqa: PLW0603 - logging is one for the process, and this is a part of it
    _holding = wanted


class _HoldingHandler(logging.StreamHandler[IO[str]]):
    """Holds back lines of less than a warning for a while."""

    def __init__(self, stream: IO[str]) -> None:
        super().__init__(stream)
        self._held: list[logging.LogRecord] | None = []
        """None once they are out."""

    def emit(self, record: logging.LogRecord) -> None:
        """Write the record, or keep it until later."""
        if self._held is None:
            super().emit(record)
            return
        self._held.append(record)
        if (
            record.levelno >= logging.WARNING
            or record.getMessage() == _STARTED
            or record.created - self._held[0].created > _HELD_SECONDS
        ):
            held, self._held = self._held, None
            for one in held:
                super().emit(one)


class TextFormatter(logging.Formatter):
    """`12:04:31.207 INFO  store.log.recovery   recovery finished  bytes=1048576`, in local time."""

    def format(self, record: logging.LogRecord) -> str:
        """The line, and a traceback under it if the event has one."""
        clock = time.strftime("%H:%M:%S", time.localtime(record.created))
        values = " ".join(f"{name}={_shown(value)}" for name, value in _values(record).items())
        line = f"{clock}.{int(record.msecs):03d} {record.levelname:<7} {_short(record.name):<22} {record.getMessage()}"
        line = f"{line}  {values}" if values else line
        return f"{line}\n{self.formatException(record.exc_info)}" if record.exc_info else line


class JsonFormatter(logging.Formatter):
    """One JSON object a line, time in UTC."""

    def format(self, record: logging.LogRecord) -> str:
        """The line; a traceback is one of its fields."""
        clock = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created))
        fields: dict[str, object] = {
            "time": f"{clock}.{int(record.msecs):03d}Z",
            "level": record.levelname.lower(),
            "logger": _short(record.name),
            "event": record.getMessage(),
        }
        fields.update(_values(record))
        if record.exc_info:
            fields["traceback"] = self.formatException(record.exc_info)
        return json.dumps(fields, default=str, ensure_ascii=False)


def _values(record: logging.LogRecord) -> dict[str, object]:
    values: dict[str, object] = getattr(record, _VALUES, {})
    return values


def _short(name: str) -> str:
    return name.removeprefix("tandemmq.")


def _shown(value: object) -> str:
    text = f"{value:.3f}" if isinstance(value, float) else str(value)
    if not text.isprintable():  # it may be a caller's: it must not steer a terminal
        return json.dumps(text)
    return json.dumps(text, ensure_ascii=False) if " " in text or not text else text
