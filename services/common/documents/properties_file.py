r"""Java properties files: the format of RocketMQ's `broker.conf`.

Rules, as `java.util.Properties.load` has them: one `key=value` a line (`:` or blanks separate as well), blanks around
key and separator do not count, `#` or `!` begins a comment line, a backslash at the end of a line joins the next one,
`\t \n \r \f \uXXXX` are escapes, a backslash before any other character is dropped. Later lines win.
Unlike Java, the file is read as UTF-8, as people write it today.
"""

import re
from collections.abc import Iterator
from typing import NamedTuple

_ESCAPES = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}
_ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|.)", re.DOTALL)
_SPLIT = re.compile(r"((?:[^\\=:\s]|\\.)*)\s*[=:]?\s*(.*)", re.DOTALL)


class Property(NamedTuple):
    """One entry of a properties file and the line (from 1) on which it begins."""

    key: str
    value: str
    line: int


def parse_properties(text: str) -> list[Property]:
    """All entries in file order, duplicates included."""
    return [_entry(line, number) for line, number in _logical_lines(text)]


def _logical_lines(text: str) -> Iterator[tuple[str, int]]:
    """Lines that carry an entry, with continuations joined; comments and blank lines left out."""
    joined, begun_at = "", 0
    for number, raw in enumerate(text.splitlines(), start=1):
        line = raw.lstrip(" \t\f")
        if not joined:
            if not line or line[0] in "#!":
                continue
            begun_at = number
        joined += line
        trailing_backslashes = len(joined) - len(joined.rstrip("\\"))
        if trailing_backslashes % 2 == 1:
            joined = joined[:-1]
            continue
        yield joined, begun_at
        joined = ""
    if joined:
        yield joined, begun_at


def _entry(line: str, number: int) -> Property:
    """Splits one logical line at its separator and resolves the escapes of both halves."""
    match = _SPLIT.fullmatch(line)
    assert match is not None, "the pattern accepts every line"
    return Property(_unescape(match[1]), _unescape(match[2]).rstrip(), number)


def _unescape(text: str) -> str:
    def resolve(match: re.Match[str]) -> str:
        escape = match[1]
        return chr(int(escape[1:], 16)) if len(escape) == 5 else _ESCAPES.get(escape, escape)

    return _ESCAPE.sub(resolve, text)
