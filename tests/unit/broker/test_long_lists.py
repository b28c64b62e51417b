"""Lists of thousands of topics and queues are made in slices: sends have the loop in between."""

from pathlib import Path

import pytest

from tandemmq.common.timers import LoopTimers
from tandemmq.store.broker.offsets import Catalog, QueueState
from tandemmq.store.broker.topics import TopicConfig
from tests.turn_counter import TurnCounter
from tests.unit.broker.broker_kit import broker

MANY = 500


class SlowTimers(LoopTimers):
    """Between two looks at this clock 0.3 ms have passed, so a slice of a millisecond is over with the fourth."""

    now = 0.0

    def elapsed(self) -> float:
        self.now += 0.0003
        return self.now


async def test_of_topics(tmp_path: Path) -> None:
    async with broker(tmp_path, timers=SlowTimers()) as kit:
        kit.topics._entries.update({name: TopicConfig(name, 4, 4) for name in map("T{:03}".format, range(MANY))})
        with TurnCounter.counting() as count:
            async for _ in kit.catalog.topics():
                count()
        assert count.all == MANY
        assert count.most <= 4


async def test_of_queues(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    state = Catalog._state

    def counted(self: Catalog, topic: str, queue_id: int, time_ms: int | None) -> QueueState:
        count()
        return state(self, topic, queue_id, time_ms)

    monkeypatch.setattr(Catalog, "_state", counted)
    async with broker(tmp_path, timers=SlowTimers()) as kit:
        kit.topics._entries["T"] = TopicConfig("T", MANY, MANY)
        with TurnCounter.counting() as count:
            states = await kit.catalog.offsets("T")
        assert [one.queue_id for one in states] == list(range(MANY))
        assert count.most <= 4
