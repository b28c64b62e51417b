"""Lists of thousands of queues and topics are made in turns of the event loop: sends do not wait for the whole."""

from pathlib import Path

import pytest

from tandemmq.store.broker.offsets import QueueState
from tandemmq.store.broker.topics import TopicConfig
from tests.manual_timers import ManualTimers
from tests.turn_counter import TurnCounter
from tests.unit.broker.broker_kit import broker

MANY = 2_000
EACH_SECONDS = 0.0003
MOST = 6
"""Of which each takes so long, in a slice of a millisecond."""


async def test_the_queues_of_a_topic(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    timers = ManualTimers()
    async with broker(tmp_path, timers=timers) as kit:
        kit.topics._entries["wide"] = TopicConfig("wide", MANY, MANY)
        timers.each_look = EACH_SECONDS
        look = kit.catalog._state
        with TurnCounter.counting() as count:

            def counted(topic: str, queue_id: int, time_ms: int | None) -> QueueState:
                count()
                return look(topic, queue_id, time_ms)

            monkeypatch.setattr(kit.catalog, "_state", counted)
            states = await kit.catalog.offsets("wide")
        assert [state.queue_id for state in states] == list(range(MANY))
        assert count.all == MANY
        assert count.most <= MOST


async def test_all_topics(tmp_path: Path) -> None:
    timers = ManualTimers()
    async with broker(tmp_path, timers=timers) as kit:
        names = [f"topic-{number:04}" for number in range(MANY)]
        for name in names:
            kit.topics._entries[name] = TopicConfig(name, 1, 1)
        timers.each_look = EACH_SECONDS
        found: list[str] = []
        with TurnCounter.counting() as count:
            async for state in kit.catalog.topics():
                count()
                found.append(state.topic)
        assert [name for name in found if name.startswith("topic-")] == names
        assert count.most <= MOST
