"""The texts of a table's entries. A table is written whole, and few of its entries have changed since the last time.

JSON in Python takes some 20 µs for each entry, in a thread that holds up the event loop meanwhile: the two take turns,
of 5 ms each. So what was made once is kept.
"""

from collections.abc import Callable, Mapping
from typing import Any, Protocol


class TextedEntry(Protocol):
    """What a table holds; never changed, only replaced."""

    def to_json(self) -> dict[str, Any]:
        """Its entry in the file."""
        ...


class EntryTexts:
    """Of one table; used by one thread at a time."""

    def __init__(self, text: Callable[[dict[str, Any]], str]) -> None:
        """`text` makes the text of one entry."""
        self._text = text
        self._known: dict[str, tuple[TextedEntry, str]] = {}

    def of(self, table: Mapping[str, TextedEntry]) -> dict[str, str]:
        """By name; made for those that have come or were replaced since the last call."""
        before = self._known
        self._known = {name: self._kept(before.get(name), one) for name, one in table.items()}
        return {name: text for name, (_, text) in self._known.items()}

    def _kept(self, before: tuple[TextedEntry, str] | None, one: TextedEntry) -> tuple[TextedEntry, str]:
        return before if before is not None and before[0] is one else (one, self._text(one.to_json()))
