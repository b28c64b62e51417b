"""Groups in a topic that keeps its messages for a shorter time than the log: they go on with what is young enough."""

from pathlib import Path

from tandemmq.common.attributes.group_attributes import KEEP_UNCONSUMED
from tandemmq.store.broker.topics import TopicConfig
from tandemmq.store.delivery.figures.figures import Figures
from tandemmq.store.delivery.journal.facts import Place
from tandemmq.store.delivery.ledger.ledger import Ledger
from tandemmq.store.delivery.ledger.unconsumed import Unconsumed
from tandemmq.store.delivery.members.groups import GroupConfig
from tests.unit.delivery.receiving_kit import GROUP, TOPIC, Groups, Scene, bodies, scene

HOUR_MS = 3_600_000


def keeps(at: Scene, hours: int) -> None:
    at.kit.topics._entries[TOPIC] = TopicConfig(TOPIC, 1, 1, other={"attributes": {"reserve.time": str(hours)}})
    at.kit.store.keep_topics(lambda name: 0 if (one := at.kit.topics.get(name)) is None else one.reserve_hours)


async def old_and_new(at: Scene) -> None:
    """Five messages that are too old for the topic, and two that are not; its group has begun before all of them."""
    keeps(at, 2)
    await at.receive()
    at.send(*"abcde")
    await at.kit.dispatched()
    at.kit.clock.now += 3 * HOUR_MS
    at.send(*"xy")
    await at.kit.dispatched()


async def passes(at: Scene) -> None:
    await at.kit.store._topics.run_once()


async def test_it_goes_on_at_the_first_and_what_it_missed_is_counted(tmp_path: Path) -> None:
    async with scene(tmp_path) as at:
        await old_and_new(at)
        await passes(at)
        taken = await at.take()
        assert bodies(taken) == ["x", "y"]
        assert at.receiving.expired() == {(GROUP, TOPIC): 5}
        await at.acknowledge(taken)
        assert at.cursor() == 7


async def test_where_all_is_too_old_it_waits_at_the_end(tmp_path: Path) -> None:
    async with scene(tmp_path) as at:
        await old_and_new(at)
        at.kit.clock.now += 3 * HOUR_MS
        await passes(at)
        assert await at.take() == []
        assert at.cursor() == 7
        at.send("z")
        await at.kit.dispatched()
        assert bodies(await at.take()) == ["z"]


async def test_what_it_holds_does_not_come_again(tmp_path: Path) -> None:
    async with scene(tmp_path) as at:
        keeps(at, 2)
        await at.receive()
        at.send(*"ab")
        await at.kit.dispatched()
        held = await at.take()
        at.kit.clock.now += 3 * HOUR_MS
        await passes(at)
        await at.acknowledge(held[:1])
        await at.timers.advance(60)
        assert await at.take() == []
        assert (at.cursor(), at.receiving.expired()) == (2, {(GROUP, TOPIC): 1})


async def test_what_was_read_ahead_for_it_is_too_old_too(tmp_path: Path) -> None:
    """A few messages after the last that it got: it came again hours later, and got them."""
    async with scene(tmp_path) as at:
        await old_and_new(at)
        assert bodies(await at.take(1)) == ["a"]
        await passes(at)
        assert bodies(await at.take(1)) == ["x"]
        assert at.receiving.expired() == {(GROUP, TOPIC): 4}


async def test_it_is_not_in_the_lag(tmp_path: Path) -> None:
    async with scene(tmp_path) as at:
        await old_and_new(at)
        figures = Figures(at.kit.store, at.ledger, at.timers, lambda place: 0)
        (before,) = await figures.of(GROUP)
        assert (before.lag, before.ready) == (7, 7)
        await passes(at)
        (now,) = await figures.of(GROUP)
        assert (now.lag, now.ready, now.oldest_ms) == (2, 2, at.kit.clock.now)
        assert now.oldest_waiting_ms == at.kit.clock.now


async def test_what_it_held_is_not_in_the_lag_either(tmp_path: Path) -> None:
    async with scene(tmp_path) as at:
        keeps(at, 2)
        await at.receive()
        at.send(*"ab")
        await at.kit.dispatched()
        assert len(await at.take()) == 2
        at.kit.clock.now += 3 * HOUR_MS
        await passes(at)
        figures = Figures(at.kit.store, at.ledger, at.timers, lambda place: 0)
        assert [one.lag for one in await figures.of(GROUP)] == [0]


async def test_no_file_is_kept_for_it(tmp_path: Path) -> None:
    """Also where its group asks for what it has not dealt with: nobody gets that any more."""
    async with scene(tmp_path) as at:
        await old_and_new(at)
        groups = Groups({GROUP: GroupConfig(GROUP, attributes={KEEP_UNCONSUMED: "true"})})
        unconsumed = Unconsumed(at.kit.store, at.ledger, groups)
        assert unconsumed.oldest() == at.kit.sent[0]
        await passes(at)
        assert unconsumed.oldest() == at.kit.sent[5]
        at.kit.clock.now += 3 * HOUR_MS
        await passes(at)
        assert unconsumed.oldest() is None


async def test_a_new_group_begins_at_the_end_where_the_first_message_is_too_old(tmp_path: Path) -> None:
    """As where the first message has expired with its file; or at the first there is, if it asks for that."""
    async with scene(tmp_path) as at:
        await old_and_new(at)
        await passes(at)
        for group, where in (("late", ""), ("early", "CONSUME_FROM_FIRST_OFFSET")):
            at.groups.put(group, attributes={"consumeFromWhere": where})
            await at.receive(group=group)
        ledger: Ledger = at.ledger
        late, early = (ledger.progress(Place(group, TOPIC, 0)) for group in ("late", "early"))
        assert late is not None
        assert early is not None
        assert (late.cursor, early.cursor) == (7, 5)
