"""Which messages are wanted, by what is in them: a text, and conditions on JSON bodies and properties. No I/O.

::

    body.customer.city = Basel and body.items[0].price >= 9.5
    property.REGION ~ eu and body."part no"

A condition is a path, an operator and a value, or a path alone: it is there. Numbers are compared as numbers, also
where they are texts, as all properties are; everything else as text. `~`: the text contains it, in any case. What is
not there fits no condition, `!=` neither; nor does a body that is no JSON.

Large bodies are looked at in small steps, by a thread (`Sieve`): while C code goes through four million bytes, no other
thread has the interpreter. Python's own JSON decoder takes five times as long, and lets others in.
"""

import codecs
import json
import math
import re
from collections.abc import Callable, Iterable, Iterator
from json import scanner
from operator import eq, ge, gt, le, lt, ne
from typing import Any, NamedTuple, cast

from tandemmq.admin.errors import BadAdminRequest
from tandemmq.store.v1 import message_pb2

LONGEST = 1_000
"""Characters of a text, and of all conditions."""

_MOST = 8
"""Conditions."""

_PIECE = 64 << 10
"""Bytes or characters that are gone through in one step."""

_SMALL = 256 << 10
"""Bytes of a body whose JSON is decoded in one step."""

_MISSING = object()

_TOKEN = re.compile(
    r'\s*(?:(?P<quoted>"(?:[^"\\]|\\.)*")|(?P<operator>!=|<=|>=|=|<|>|~)|\[(?P<index>\d{1,9})\]|(?P<dot>\.)'
    r'|(?P<word>[^\s"\[\].=!<>~]+))'
)
_VALUE = re.compile(r'\s*("(?:[^"\\]|\\.)*"|\S+)')
_AND = re.compile(r"\s+and\s+", re.IGNORECASE)

_OPERATORS: dict[str, Callable[[Any, Any], bool]] = {
    "=": eq, "!=": ne, "<": lt, "<=": le, ">": gt, ">=": ge,
}  # fmt: skip

_FORM = "write body.NAME or property.NAME, then = != < <= > >= or ~ and a value; several with `and` between"


class _Condition(NamedTuple):
    path: tuple[str | int, ...]
    """The first is `body` or `property`."""
    operator: str
    """Empty: it is there."""
    value: str

    def holds(self, body: Any, properties: dict[str, str], write: Callable[[Any], str]) -> bool:
        """`write`: gives a value as text."""
        found = _at(body if self.path[0] == "body" else properties, self.path[1:])
        if found is _MISSING:
            return False
        if not self.operator:
            return True
        if self.operator == "~":
            return _contain(_cut(write(found)), self.value.casefold())
        numbers = _number(found), _number(self.value)
        if None not in numbers:
            return _OPERATORS[self.operator](*numbers)
        return _OPERATORS[self.operator](write(found), self.value)


class MessageFilter:
    """What was asked for."""

    def __init__(self, text: str, where: str) -> None:
        """Raises BadAdminRequest."""
        for name, given in (("text", text), ("where", where)):
            if len(given) > LONGEST:
                raise BadAdminRequest(f"the filter's {name} has {len(given):,} characters: {LONGEST:,} at most")
        self._text = text.casefold()
        self._conditions = list(_parse(where))
        self._reads_body = any(one.path[0] == "body" for one in self._conditions)

    def fits(self, message: message_pb2.StoredMessage) -> bool:
        """Whether a message, with its body, is wanted."""
        if self._text and not self._has_text(message):
            return False
        if not self._conditions:
            return True
        body = _json(message.body) if self._reads_body else _MISSING
        properties = dict(message.properties)
        try:
            write = _text if len(message.body) <= _SMALL else _text_in_steps
            return all(one.holds(body, properties, write) for one in self._conditions)
        except RecursionError:  # a value that could be read, but is too deep to be written as text
            return False

    def _has_text(self, message: message_pb2.StoredMessage) -> bool:
        if any(self._text in f"{name}\0{value}".casefold() for name, value in message.properties.items()):
            return True
        return _contain(_decoded(message.body), self._text)


def _parse(where: str) -> Iterator[_Condition]:
    """Raises BadAdminRequest."""
    rest = where.strip()
    number = 0
    while rest:
        number += 1
        if number > _MOST:
            raise BadAdminRequest(f"the filter has more than {_MOST} conditions")
        condition, rest = _condition(rest)
        yield condition
        if rest:
            joined = _AND.match(f" {rest} ")
            if joined is None or not (rest := f" {rest} "[joined.end() :].strip()):
                raise BadAdminRequest(f"the filter is not understood at {rest[:40]!r}", remedy=_FORM)


def _condition(text: str) -> tuple[_Condition, str]:
    """The first condition, and what comes after it. Raises BadAdminRequest."""
    path: list[str | int] = []
    after_dot, at = True, 0
    while (token := _TOKEN.match(text, at)) is not None:
        name = token["quoted"] or token["word"]
        if token["operator"] or (name and not after_dot):
            break
        if name is not None:
            path.append(_unquoted(name))
        elif token["index"] is not None and path and not after_dot:
            path.append(int(token["index"]))
        elif token["dot"] is None or after_dot:
            raise BadAdminRequest(f"the filter is not understood at {text[at:][:40]!r}", remedy=_FORM)
        after_dot = token["dot"] is not None
        at = token.end()
    if after_dot or path[0] not in ("body", "property") or (path[0] == "property" and len(path) != 2):
        raise BadAdminRequest(f"the filter's {text[:40]!r} names nothing of a message", remedy=_FORM)
    if token is None or not token["operator"]:
        return _Condition(tuple(path), "", ""), text[at:].strip()
    value = _VALUE.match(text, token.end())
    if value is None:
        raise BadAdminRequest(f"the filter has no value after {text[: token.end()]!r}", remedy=_FORM)
    return _Condition(tuple(path), token["operator"], _unquoted(value[1])), text[value.end() :].strip()


def _unquoted(text: str) -> str:
    """Raises BadAdminRequest."""
    if not text.startswith('"'):
        return text
    try:
        return str(json.loads(text))
    except ValueError as error:
        raise BadAdminRequest(f"the filter's {text[:40]} is no text in quotes") from error


def _at(value: Any, path: tuple[str | int, ...]) -> Any:
    for step in path:
        if isinstance(step, int):
            if not isinstance(value, list) or step >= len(value):
                return _MISSING
            value = value[step]
        elif isinstance(value, dict) and step in value:
            value = value[step]
        else:
            return _MISSING
    return value


class _StepDecoder(json.JSONDecoder):
    """Decodes in Python, not in C: others have the interpreter in between."""

    def __init__(self) -> None:
        super().__init__()
        self.scan_once = cast(Any, scanner).py_make_scanner(self)


def _json(body: bytes) -> Any:
    try:
        return json.loads(body, cls=json.JSONDecoder if len(body) <= _SMALL else _StepDecoder)
    except (ValueError, RecursionError):
        return _MISSING


def _number(value: Any) -> float | int | None:
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        number = float(value) if isinstance(value, str) else value
    except ValueError:
        return None
    return None if isinstance(number, float) and not math.isfinite(number) else number


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _text_in_steps(value: Any) -> str:
    return value if isinstance(value, str) else "".join(json.JSONEncoder(ensure_ascii=False).iterencode(value))


def _decoded(body: bytes) -> Iterator[str]:
    """A body as text, in pieces."""
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    for at in range(0, len(body), _PIECE):
        yield decoder.decode(body[at : at + _PIECE])
    yield decoder.decode(b"", final=True)


def _cut(text: str) -> Iterator[str]:
    return (text[at : at + _PIECE] for at in range(0, len(text) or 1, _PIECE))


def _contain(pieces: Iterable[str], text: str) -> bool:
    """Whether a text, which is casefolded, is in what the pieces are together. Casefolding looks at no neighbours."""
    kept = ""
    for piece in pieces:
        kept += piece.casefold()
        if text in kept:
            return True
        kept = kept[max(0, len(kept) - len(text) + 1) :]
    return False
