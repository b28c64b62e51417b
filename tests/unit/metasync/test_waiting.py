"""What metasync does again and again, by timers that the test moves on."""

import asyncio
from itertools import chain, pairwise, repeat
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from tandemmq.common.calling.client_channel import Dialer
from tandemmq.common.settings.broker_role import BrokerRole
from tandemmq.metasync.errors import DocumentNotSaved
from tandemmq.metasync.keeper import flush_for_ever
from tandemmq.metasync.puller import TablePuller
from tandemmq.metasync.standing import LONGEST_PAUSE, NodeRole, Standing, StandingKeeper
from tandemmq.metasync.tables import TableKind
from tests.manual_timers import ManualTimers


class AbsentStore(StandingKeeper):
    """Asks a store that is away, but for when the test says that it answers."""

    def __init__(self, root: Path, timers: ManualTimers) -> None:
        super().__init__(root, BrokerRole.ASYNC_MASTER, "127.0.0.1:1", cast(Dialer, None), timers)
        self.asked: list[float] = []
        self.answer: Standing | None = None
        self._clock = timers

    async def ask(self) -> Standing:
        self.asked.append(self._clock.time())
        if self.answer is None:
            self.store.gone("UNAVAILABLE")
        else:
            self.store.came()
        self.now = self.answer or self.now
        return self.now


async def test_a_store_that_is_away_is_asked_less_often(tmp_path: Path) -> None:
    timers = ManualTimers()
    store = AbsentStore(tmp_path, timers)
    heard: list[Standing] = []

    async def changed(standing: Standing) -> None:
        heard.append(standing)
        if len(heard) == 1:
            raise DocumentNotSaved("no room")

    following = asyncio.create_task(store.follow(1.0, changed))
    await timers.advance(1 + 1 + 2 + 4 + 4)
    pauses = [later - earlier for earlier, later in pairwise(store.asked)]
    longest = chain((1, 2), repeat(4))  # where they are short by chance, there are more of them
    assert all(most / 2 <= pause <= most for most, pause in zip(longest, pauses, strict=False)), pauses
    assert len(pauses) >= 4
    store.answer = Standing(NodeRole.SLAVE, 7, "store")
    await timers.advance(LONGEST_PAUSE + 1)
    assert heard == [store.answer] * 2, "it is told again where the tables were not ready"
    count = len(store.asked)
    await timers.advance(5)
    assert len(store.asked) == count + 5, "as often as before"
    following.cancel()


@pytest.mark.parametrize("error", [DocumentNotSaved("no room"), ValueError("unforeseen")])
async def test_a_table_that_was_not_saved_is_tried_again(error: Exception) -> None:
    timers, flushed = ManualTimers(), list[float]()

    class Full:
        async def flush(self, kind: TableKind) -> None:
            flushed.append(timers.time())
            raise error

    keeper: Any = Full()
    begun = timers.time()
    flushing = asyncio.create_task(flush_for_ever(keeper, TableKind.CONSUMER_OFFSETS, 5.0, timers))
    await timers.advance(16)
    assert flushed == [begun + 5, begun + 10, begun + 15]
    flushing.cancel()


class Puller(TablePuller):
    """Notes when it would copy tables; the first time something unforeseen happens."""

    def __init__(self, timers: ManualTimers) -> None:
        super().__init__(cast(Any, None), cast(Any, SimpleNamespace(address="127.0.0.1:1")), frozenset(), timers)
        self.copied: list[float] = []
        self._clock = timers

    async def cycle(self) -> None:
        self.copied.append(self._clock.time())
        if len(self.copied) == 1:
            raise ValueError("unforeseen")


async def test_tables_are_copied_again_and_again_whatever_happens() -> None:
    timers = ManualTimers()
    puller, begun = Puller(timers), timers.time()
    copying = asyncio.create_task(puller.run(3.0, 10.0))
    await timers.advance(24)
    assert puller.copied == [begun + 3, begun + 13, begun + 23]
    assert puller.problems, "of the first"
    copying.cancel()
