"""Topics and groups of one broker, as far as they were asked for; its store tells when they change."""

from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

from tandemmq.broker.v1 import broker_pb2
from tandemmq.common.documents import java_json
from tandemmq.common.log_output import get_log

log = get_log(__name__)

One = TypeVar("One")

MOST_ENTRIES = 100_000
"""Entries that are kept; then all are asked for anew."""


class RemoteEntries(Generic[One]):
    """The topics, or the groups, of one broker. What is not there is asked for each time: it may have been made."""

    def __init__(
        self,
        read: Callable[[str, dict[str, object]], One],
        ask: Callable[[str], Awaitable[broker_pb2.Entry]],
        told: Callable[[], None] = lambda: None,
    ) -> None:
        """`read` makes one of its name and its object, or raises ValueError; `ask` asks the broker.

        `told` hears that `get` may give something else than before.
        """
        self._read = read
        self._ask = ask
        self._told = told
        self._known: dict[str, One] = {}

    def get(self, name: str) -> One | None:
        """An entry as it was last heard of."""
        return self._known.get(name)

    async def find(self, name: str) -> One | None:
        """An entry, or None if there is none. Raises as asking does."""
        known = self._known.get(name)
        if known is None:
            self.changed(await self._ask(name))
            known = self._known.get(name)
        return known

    def changed(self, entry: broker_pb2.Entry) -> None:
        """What the broker says of an entry."""
        self._known.pop(entry.name, None)
        if entry.json:
            self._take(entry)
        self._told()

    def _take(self, entry: broker_pb2.Entry) -> None:
        if len(self._known) >= MOST_ENTRIES:
            self._known.clear()
        try:
            self._known[entry.name] = self._read(entry.name, java_json.loads(entry.json))
        except ValueError as error:
            log.warning("an entry of a broker makes no sense", name=entry.name, reason=str(error))

    def forget(self) -> None:
        """The link is a new one: what changed meanwhile was not told."""
        self._known.clear()
        self._told()
