"""Names in pages, and which of them are wanted."""

import re
from collections.abc import Callable, Iterable
from itertools import islice
from typing import NamedTuple

from tandemmq.admin.errors import BadAdminRequest

DEFAULT_LIMIT = 100
MOST = 1_000


class Page(NamedTuple):
    """Some names of a list."""

    names: list[str]
    total: int
    """Of all pages."""
    next: str
    """The last name here; empty on the last page."""


def checked_limit(limit: int) -> int:
    """How many names a page has. Raises BadAdminRequest."""
    if not 0 <= limit <= MOST:
        raise BadAdminRequest(f"limit is {limit}: 0 (which means {DEFAULT_LIMIT}) to {MOST:,} are allowed")
    return limit or DEFAULT_LIMIT


def matcher(match: str) -> Callable[[str], bool]:
    """Whether a name is wanted: a part of it in any case, or a pattern of the whole name with * and ?."""
    if not match:
        return lambda _: True
    if "*" in match or "?" in match:
        text = re.escape(match).replace(r"\*", ".*").replace(r"\?", ".")
        pattern = re.compile(text, re.DOTALL)
        return lambda name: pattern.fullmatch(name) is not None
    part = match.lower()
    return lambda name: part in name.lower()


def page_of(names: Iterable[str], after: str, limit: int) -> Page:
    """A page of the names, which are sorted here."""
    ordered = sorted(names)
    begin = 0
    if after:
        begin = next((at for at, name in enumerate(ordered) if name > after), len(ordered))
    found = list(islice(ordered, begin, begin + limit))
    more = begin + len(found) < len(ordered)
    return Page(found, len(ordered), found[-1] if more and found else "")
