"""Receives that may be repeated: what an attempt was given, until that is due again."""

import asyncio
from collections import OrderedDict
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import NamedTuple

from tandemmq.store.delivery.receiving.answer import Share
from tandemmq.store.delivery.receiving.handles import Shown

_MOST = 20_000
"""Attempts that are remembered; the oldest are forgotten first."""


class AttemptKey(NamedTuple):
    """Whose attempt: group, topic, client, and the text that the client chose."""

    group: str
    topic: str
    client_id: str
    attempt_id: str


class Attempts:
    """By attempt: the messages that it was given."""

    def __init__(self) -> None:
        self._given: OrderedDict[AttemptKey, list[tuple[Share, Shown]]] = OrderedDict()
        self._looking: dict[AttemptKey, asyncio.Future[None]] = {}

    @asynccontextmanager
    async def alone(self, key: AttemptKey) -> AsyncIterator[None]:
        """For a look in several turns: a repeat of the attempt waits until it is known what the first one is given."""
        while (other := self._looking.get(key)) is not None:
            await asyncio.wait((other,))
        mine = self._looking[key] = asyncio.get_running_loop().create_future()
        try:
            yield
        finally:
            del self._looking[key]
            mine.set_result(None)

    def remember(self, key: AttemptKey, given: Sequence[tuple[Share, Shown]]) -> None:
        """An attempt was given these messages."""
        before = self._given.pop(key, None)
        if before is not None:
            before.clear()  # they are this answer's now: see `take_back`
        self._given[key] = list(given)
        if len(self._given) > _MOST:
            self._given.popitem(last=False)

    def get(self, key: AttemptKey) -> list[tuple[Share, Shown]]:
        """What an attempt was given before; the receiver looks which of it still counts."""
        return self._given.get(key, [])

    def take_back(self, key: AttemptKey, given: Sequence[tuple[Share, Shown]]) -> bool:
        """An answer never left. Whether its messages are there again: not so where a repeat was given them since.

        `given`: what `get` has said of it.
        """
        if not given:
            return False
        if self._given.get(key) is given:
            del self._given[key]
        return True
