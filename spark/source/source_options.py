"""The options of the data source: ``spark.read.format("commitlog").option(name, value)``.

Spark shows the message of an error and nothing else of it, so messages here say what to do, too.
"""

import difflib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Self

from tandemmq.spark.errors import BadJobOption
from tandemmq.spark.reading.ranges import DEFAULT_RANGE_SIZE
from tandemmq.spark.source.conditions import Condition
from tandemmq.spark.source.where import parse_where

EARLIEST, LATEST = "earliest", "latest"
_LEAST_RANGE = 1 << 16


@dataclass(frozen=True, slots=True)
class SourceOptions:
    """Options, read and checked. Names are case-insensitive, as all of Spark's."""

    path: Path | None
    """A store's directory, or the directory of the log files. None: a stream reads from `store`."""
    starting_offsets: int | None = None
    """``startingOffsets``: ``earliest``, ``latest`` or a log offset; records that begin before are left out. None: one
    of the words."""
    starting_at_end: bool = False
    """``startingOffsets`` is ``latest``; for streams."""
    ending_offsets: int | None = None
    """``endingOffsets``: ``latest`` or a log offset; records that begin at it or after are left out. None: latest."""
    starting_timestamp: int | None = None
    """``startingTimestamp``: ms; records stored before are left out."""
    ending_timestamp: int | None = None
    """``endingTimestamp``: ms; records stored then or later are left out."""
    fail_on_data_loss: bool = True
    """``failOnDataLoss``: a file missing in the middle, or records expired that `starting_offsets` asks for, is an
    error; else a warning."""
    max_offsets_per_trigger: int | None = None
    """``maxOffsetsPerTrigger``: messages in one micro-batch of a stream."""
    columns: tuple[str, ...] = ()
    """``columns``: names with commas between; the table has these only. Empty: all."""
    topic: tuple[str, ...] = ()
    """``topic``: names with commas between; records of other topics are left out. Empty: all."""
    where: tuple[Condition, ...] = ()
    """``where``: conditions that rows must meet, as ``size > 1000 AND tags = 'paid'`` (where.py)."""
    key: str | None = None
    """``key``: only messages that have this among their keys, or as their unique key."""
    range_size: int = DEFAULT_RANGE_SIZE
    """``rangeSize``: bytes of log that one task reads, about; at least 64 KiB."""
    store: str | None = None
    """``store``: ``host:port`` of the store that writes the log; what it has not finished writing is not read."""
    check_crc: bool = True
    """``checkCrc``: compare checksums of bodies; without, reading is faster and is_valid says less."""
    push_filters: bool = False
    """``pushFilters``: test conditions of the query in the scan. Only for a DataFrame that one query uses: Spark 4.3
    keeps what it has pushed, so that later queries on the same DataFrame would miss rows. Spark wants its setting
    ``spark.sql.python.filterPushdown.enabled`` for it."""
    include_damaged: bool = True
    """``includeDamaged``: rows for what is damaged; without, all rows are valid."""

    @classmethod
    def parse(cls, options: Mapping[str, str]) -> Self:
        """From what Spark hands over. Raises BadJobOption for an unknown name or a value that cannot be."""
        values: dict[str, Any] = {}
        for name, text in options.items():
            field = _FIELDS.get(name.lower())
            if field is None:
                raise _unknown(name)
            values[field] = _PARSERS.get(field, _text)(_NAMES[field], text)
        if "path" not in values and "store" not in values:
            raise BadJobOption("No path is given. Name the directory: .load(path).")
        if values.get("starting_offsets") == LATEST:
            values |= {"starting_offsets": None, "starting_at_end": True}
        return cls(**({"path": None} | values))


def _camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(map(str.capitalize, rest))


_NAMES = {field.name: _camel(field.name) for field in fields(SourceOptions) if field.name != "starting_at_end"}
_FIELDS = {name.lower(): field for field, name in _NAMES.items()}


def _unknown(name: str) -> BadJobOption:
    if name.lower() == "paths":
        return BadJobOption("A commit log is read from one directory. Load each of several, then union them.")
    near = difflib.get_close_matches(name.lower(), _FIELDS, n=1)
    if near:
        return BadJobOption(f"There is no option {name}. Did you mean {_NAMES[_FIELDS[near[0]]]}?")
    return BadJobOption(f"There is no option {name}. The options are: {', '.join(_NAMES.values())}.")


def _text(name: str, text: str) -> str:
    if not text:
        raise BadJobOption(f"Option {name} is empty.")
    return text


def _number(name: str, text: str, least: int = 0) -> int:
    try:
        value = int(text)
    except ValueError:
        value = -1
    if value < least:
        raise BadJobOption(f"Option {name} is {text!r}, not a number from {least} on.")
    return value


def _positive(name: str, text: str) -> int:
    return _number(name, text, 1)


def _start(name: str, text: str) -> int | str | None:
    word = text.strip().lower()
    if word in (EARLIEST, LATEST):
        return None if word == EARLIEST else LATEST
    return _offset(name, text, f"{EARLIEST!r}, {LATEST!r}")


def _end(name: str, text: str) -> int | None:
    return None if text.strip().lower() == LATEST else _offset(name, text, repr(LATEST))


def _offset(name: str, text: str, words: str) -> int:
    try:
        return _number(name, text)
    except BadJobOption:
        raise BadJobOption(f"Option {name} is {text!r}, not one of {words} or a log offset.") from None


def _flag(name: str, text: str) -> bool:
    if text.strip().lower() not in ("true", "false"):
        raise BadJobOption(f"Option {name} is {text!r}, neither true nor false.")
    return text.strip().lower() == "true"


def _names(name: str, text: str) -> tuple[str, ...]:
    found = tuple(part.strip() for part in text.split(",") if part.strip())
    if not found:
        raise BadJobOption(f"Option {name} names nothing.")
    return found


def _path(name: str, text: str) -> Path:
    scheme, colon, rest = _text(name, text).partition("://")
    if colon and scheme != "file":
        raise BadJobOption(
            f"{text} is on no file system of this machine; a log is mapped into memory to be read. "
            "Copy it to a local disk, or mount it, wherever workers run."
        )
    return Path(rest if colon else text.removeprefix("file:"))


_PARSERS: dict[str, Callable[[str, str], Any]] = {
    "path": _path,
    "starting_offsets": _start,
    "ending_offsets": _end,
    "starting_timestamp": _number,
    "ending_timestamp": _number,
    "fail_on_data_loss": _flag,
    "max_offsets_per_trigger": _positive,
    "columns": _names,
    "topic": _names,
    "where": lambda name, text: parse_where(_text(name, text)),
    "range_size": lambda name, text: _number(name, text, _LEAST_RANGE),
    "check_crc": _flag,
    "push_filters": _flag,
    "include_damaged": _flag,
}
