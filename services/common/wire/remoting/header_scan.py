"""HeaderScan: the typed fields of one kind of request, taken straight out of its header's bytes.

For the few codes of which most traffic consists. A scan knows in which orders clients write the fields, and takes
nothing else: another order, a field it does not know, an escape it does not expect, a number that is too long. Then it
gives None, and `codec.decode` says what the header is. What it takes it reads as that does, and `fields.Fields`.
"""

import re
import struct
from collections.abc import Callable, Sequence
from enum import Enum
from functools import cached_property, partial
from operator import itemgetter
from typing import Any, NamedTuple, cast

from tandemmq.common.wire.remoting.binary_header import LANGUAGES
from tandemmq.common.wire.remoting.command import ONE_WAY, Command
from tandemmq.common.wire.remoting.frames import RemotingFrame, Serialization


class FieldKind(Enum):
    """What a field's text means."""

    TEXT = "text"
    PROPERTIES = "properties"
    """A text with RocketMQ's separators, U+0001 and U+0002, which JSON escapes."""
    INT = "int"
    """Java's int, of at most 9 digits, or the largest; negative only in JSON."""
    LONG = "long"
    """Java's long, of at most 18 digits; negative only in JSON."""
    FLAG = "flag"
    """`true` or `false`."""


class TypedField(NamedTuple):
    """One field of a header."""

    name: str
    kind: FieldKind
    demanded: bool = True
    """Else its value is empty or None where it is missing or empty."""


_PLAIN = r'[^"\\\x00-\x1f]'
_INTEGER = "-?(?:0|[1-9][0-9]{0,8})"
_PATTERNS = {
    FieldKind.TEXT: f"{_PLAIN}*+",
    FieldKind.PROPERTIES: rf"{_PLAIN}*+(?:\\u000[12]{_PLAIN}*+)*+",
    FieldKind.INT: "-?[0-9]{1,9}|2147483647",
    FieldKind.LONG: "-?[0-9]{1,18}",
    FieldKind.FLAG: "true|false",
}
_HEAD = struct.Struct(">hBhiiii")
"""A binary header before its fields: code, language, version, opaque, flag, length of the remark (0), of the fields."""
_LARGEST_INT = b"2147483647"
_LENGTH = struct.Struct(">i")

Scanned = tuple[tuple[Any, ...], int, int, str, int]
"""The values of a header's fields, its opaque, flag, language and version."""
JsonRead = Callable[[bytes], Scanned | None]
"""A compiled twin of a scan for headers in JSON."""

_Found = tuple[Callable[[str], re.Match[str] | None], Callable[[tuple[str | None, ...]], tuple[str | None, ...]]]
_Step = tuple[bytes, int, bool, int, Callable[[bytes], Any]]


class HeaderScan:
    """Scans the headers of a request code."""

    def __init__(self, code: int, fields: Sequence[TypedField], *orders: str) -> None:
        """`orders`: the names as clients write them, with blanks between; `name?` may be missing, but not the first.

        Names that are not in `fields` are texts that nobody wants. Raises ValueError: a field that is demanded may be
        missing in an order.
        """
        self.code = code
        self.fields = tuple(fields)
        self._fields = fields
        self._reads = [(at, read) for at, one in enumerate(fields) if (read := _from_json(one)) is not None]
        written = [{name.rstrip("?"): name.endswith("?") for name in order.split()} for order in orders]
        if any(one.demanded and order.get(one.name, True) for order in written for one in fields):
            raise ValueError(f"a field of code {code} is demanded, and may be missing")
        self._written = written
        self._steps = [self._binary_steps(order) for order in written]

    def scan(self, frame: RemotingFrame) -> Command | None:
        """The request, with the values of the fields in `scanned`; None: it is nothing for a scan."""
        return self._binary(frame) if frame.serialization is Serialization.ROCKETMQ else self._json(frame)

    # -- JSON -------------------------------------------------------------------------------------------------------

    @cached_property
    def _patterns(self) -> list[_Found]:
        """By the first request: to compile them takes milliseconds, and most stores have no classic clients."""
        return [self._pattern(order) for order in self._written]

    def _pattern(self, order: dict[str, bool]) -> _Found:
        """What matches a whole header, and what puts its groups in the order of the fields; the last are the head."""
        known = {one.name: one for one in self._fields}
        parts, groups = list[str](), dict[str, int]()
        for name, may_miss in order.items():
            field = known.get(name)
            value = _PATTERNS[FieldKind.TEXT if field is None else field.kind]
            if field is not None:
                groups[name] = len(groups)
                if field.demanded and field.kind is FieldKind.TEXT:
                    value = value.replace("*", "+")
            part = f'{"," if parts else ""}"{re.escape(name)}":"({"?:" if field is None else ""}{value})"'
            parts.append(f"(?:{part})?+" if may_miss else part)
        pattern = (
            rf'\{{"code":{self.code},"extFields":\{{{"".join(parts)}\}},"flag":([02]),"language":"([A-Z_]++)",'
            rf'"opaque":({_INTEGER}),"serializeTypeCurrentRPC":"JSON","version":({_INTEGER})()\}}'
        )
        nothing = len(groups) + 4  # the group after those of the head, which is always empty
        places = [groups.get(one.name, nothing) for one in self._fields]
        return re.compile(pattern).fullmatch, itemgetter(*places, *range(len(groups), nothing))

    def _json(self, frame: RemotingFrame) -> Command | None:
        try:
            text = frame.header.decode()
        except UnicodeDecodeError:
            return None
        patterns = self._patterns
        for place, (matches, in_order) in enumerate(patterns):
            found = matches(text)
            if found is not None:
                if place:  # it comes again
                    patterns.insert(0, patterns.pop(place))
                *values, flag, language, opaque, version = cast(tuple[Any, ...], in_order(found.groups()))
                for at, read in self._reads:
                    values[at] = read(values[at])
                head = int(opaque), int(flag), None, frame.body, None, language, int(version)
                return Command(self.code, *head, scanned=tuple(values))
        return None

    # -- binary -----------------------------------------------------------------------------------------------------

    def _binary_steps(self, order: dict[str, bool]) -> list[_Step]:
        """What is before each value, its size with the value's length, whether it may be missing, where it belongs."""
        places = {one.name: at for at, one in enumerate(self._fields)}
        steps = list[_Step]()
        for name, may_miss in order.items():
            key, at = len(name).to_bytes(2, "big") + name.encode(), places.get(name, -1)
            read = bytes.decode if at < 0 else _from_binary(self._fields[at])
            steps.append((key, len(key) + _LENGTH.size, may_miss, at, read))
        return steps

    def _binary(self, frame: RemotingFrame) -> Command | None:
        header = frame.header
        if len(header) < _HEAD.size:
            return None
        code, language, version, opaque, flag, remark, size = _HEAD.unpack_from(header)
        if remark or flag & ~ONE_WAY or _HEAD.size + size != len(header) or language >= len(LANGUAGES):
            return None
        for steps in self._steps:
            values = self._walk(header, steps)
            if values is not None:
                spoken, form = LANGUAGES[language], Serialization.ROCKETMQ
                return Command(code, opaque, flag, None, frame.body, None, spoken, version, form, scanned=values)
        return None

    def _walk(self, header: bytes, steps: list[_Step]) -> tuple[Any, ...] | None:
        """The values, if the fields are written in this order and make sense."""
        values: list[Any] = [None] * (len(self._fields) + 1)  # the last is for what nobody wants
        position, end = _HEAD.size, len(header)
        try:
            for key, size, may_miss, at, read in steps:
                start = position + size
                if header[position : start - 4] == key:
                    position = start + _LENGTH.unpack_from(header, start - 4)[0]
                    if not start <= position <= end:
                        return None
                    values[at] = read(header[start:position])
                elif not may_miss:
                    return None
        except (ValueError, KeyError, struct.error):
            return None
        return tuple(values[:-1]) if position == end else None


class Scans:
    """The scans of several codes."""

    def __init__(self, scans: Sequence[HeaderScan]) -> None:
        self._json = {b"%d" % one.code: one for one in scans}
        self._binary = {one.code.to_bytes(2, "big"): one for one in scans if one.code < 1 << 15}
        self._reads: dict[bytes, tuple[int, JsonRead]] = {}

    def begin_with(self, read: Callable[[HeaderScan], JsonRead]) -> None:
        """Ask a compiled twin first, where there are no properties among the fields."""
        for name, scan in self._json.items():
            if all(one.kind is not FieldKind.PROPERTIES for one in scan.fields):
                self._reads[name] = scan.code, read(scan)

    def scan(self, frame: RemotingFrame) -> Command | None:
        """See `HeaderScan.scan`; None for every other code too."""
        header = frame.header
        if frame.serialization is Serialization.ROCKETMQ:
            known = self._binary.get(header[:2])
        elif header.startswith(b'{"code":'):
            name = header[8 : header.find(b",", 8, 20)]
            quick = self._reads.get(name)
            if quick is not None:
                code, read = quick
                found = read(header)
                if found is not None:
                    values, opaque, flag, language, version = found
                    return Command(code, opaque, flag, None, frame.body, None, language, version, scanned=values)
            known = self._json.get(name)
        else:
            return None
        return None if known is None else known.scan(frame)


def _from_json(field: TypedField) -> Callable[[Any], Any] | None:
    """Reads a text that matches its pattern; None: it is the value."""
    if field.kind is FieldKind.TEXT:
        return None
    if field.kind is FieldKind.PROPERTIES:
        return _unescaped
    if field.kind is FieldKind.FLAG:
        return {"true": True, "false": False}.get
    return int if field.demanded else _int_or_none


def _from_binary(field: TypedField) -> Callable[[bytes], Any]:
    """Reads any bytes. Raises ValueError: they are nothing for a scan."""
    if field.kind is FieldKind.FLAG:
        return {b"true": True, b"false": False, b"": None}.__getitem__
    if field.kind in (FieldKind.INT, FieldKind.LONG):
        return partial(_number, 9 if field.kind is FieldKind.INT else 18, field.demanded)
    return _text if field.demanded else bytes.decode


def _unescaped(text: str | None) -> str | None:
    return text and text.replace("\\u0001", "\x01").replace("\\u0002", "\x02")


def _int_or_none(text: str | None) -> int | None:
    return int(text) if text else None


def _text(data: bytes) -> str:
    if not data:
        raise ValueError(data)
    return data.decode()


def _number(most: int, demanded: bool, data: bytes) -> int | None:
    if data.isdigit() and (len(data) <= most or data == _LARGEST_INT):
        return int(data)
    if data or demanded:
        raise ValueError(data)
    return None
