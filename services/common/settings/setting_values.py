"""Setting values as text: parsing, showing, and describing what a type allows."""

import enum
import types
import typing
from pathlib import Path
from typing import Any

_TRUE = {"true", "yes", "on", "1"}
_FALSE = {"false", "no", "off", "0"}


class ParseError(ValueError):
    """The text is not a value of the type; the message says what is allowed."""


def parse_value(text: str, kind: Any) -> Any:
    """The value of type `kind` that `text` stands for. Raises ParseError.

    Enums are matched by name or value without regard to case, as RocketMQ's `flushDiskType=ASYNC_FLUSH` is; tuples are
    split at commas and semicolons; for `X | None` the empty text is None. Numbers may be grouped: 1_000_000.
    """
    text = text.strip()
    inner, optional = unwrap_optional(kind)
    if optional and not text:
        return None
    if inner is bool:
        return _parse_bool(text)
    if inner is int or inner is float:
        return _parse_number(text, inner)
    if inner is str:
        return text
    if inner is Path:
        if not text:
            raise ParseError("a path")
        return Path(text).expanduser()
    if isinstance(inner, type) and issubclass(inner, enum.Enum):
        return _parse_enum(text, inner)
    if typing.get_origin(inner) is tuple:
        pieces = (piece.strip() for piece in text.replace(";", ",").split(","))
        return tuple(piece for piece in pieces if piece)
    raise AssertionError(f"settings cannot be of type {kind!r}")


def describe_type(kind: Any) -> str:
    """The type's name for people: `int`, `path`, `ASYNC_FLUSH | SYNC_FLUSH`, `int or empty`."""
    inner, optional = unwrap_optional(kind)
    if inner is Path:
        name = "path"
    elif isinstance(inner, type) and issubclass(inner, enum.Enum):
        name = " | ".join(str(show_value(member)) for member in inner)
    elif typing.get_origin(inner) is tuple:
        name = "list, separated by commas"
    else:
        name = inner.__name__
    return f"{name} or empty" if optional else name


def show_value(value: object) -> str:
    """The value as one would write it in the file."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, enum.Enum):
        return value.name
    if isinstance(value, tuple):
        return ",".join(map(str, value))
    return str(value)


def unwrap_optional(kind: Any) -> tuple[Any, bool]:
    """`X | None` as (X, True), anything else as (kind, False)."""
    if typing.get_origin(kind) in (typing.Union, types.UnionType):
        inner = [argument for argument in typing.get_args(kind) if argument is not type(None)]
        assert len(inner) == 1, f"settings cannot be of type {kind!r}"
        return inner[0], True
    return kind, False


def _parse_bool(text: str) -> bool:
    if text.lower() in _TRUE:
        return True
    if text.lower() in _FALSE:
        return False
    raise ParseError("true or false")


def _parse_number(text: str, kind: type[int] | type[float]) -> int | float:
    try:
        return kind(text)
    except ValueError:
        raise ParseError("a whole number" if kind is int else "a number") from None


def _parse_enum(text: str, kind: type[enum.Enum]) -> enum.Enum:
    for member in kind:
        if text.upper() == member.name.upper() or text.upper() == str(member.value).upper():
            return member
    raise ParseError("one of " + ", ".join(member.name for member in kind))
