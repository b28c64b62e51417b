"""Automatic renewal, and what operators see of it."""

from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from tandemmq.store.delivery.figures.figures import GroupFigures
from tandemmq.store.delivery.journal.facts import Place
from tandemmq.store.delivery.members.sessions import Member
from tandemmq.store.delivery.port import GivenMessage
from tandemmq.store.delivery.receiving.renewal import GRACE_MS
from tandemmq.store.format.record import decode_record
from tests.manual_timers import turns
from tests.unit.delivery.receiving_kit import GROUP, TOPIC, Scene, bodies, numbers, scene


async def test_what_a_living_client_holds_stays_with_it_and_comes_again_when_it_is_gone(tmp_path: Path) -> None:
    async with scene(tmp_path) as at:
        at.send("a", "b")
        member = Member("client", GROUP)
        at.sessions.register(member)
        held = await at.take(renew=True, client_id="client")
        for _ in range(20):
            await at.timers.advance(30)
            at.sessions.heard_of(member)
        assert await at.take() == []
        assert [one.error for one in await at.acknowledge(held[:1])] == [None]
        at.sessions.unregister(member)
        await at.timers.advance(1)
        again = await at.take()
        assert (bodies(again), numbers(again)) == (["b"], [2])


async def test_a_client_that_was_never_heard_of_is_not_renewed(tmp_path: Path) -> None:
    async with scene(tmp_path) as at:
        at.send("a")
        await at.take(renew=True, client_id="nobody")
        await at.timers.advance(61)
        assert numbers(await at.take()) == [2]


async def test_what_may_never_have_arrived_is_not_renewed_for_hours(tmp_path: Path) -> None:
    """A gateway was killed with an answer on its way: it counts as given, and the living client may not have it."""
    async with scene(tmp_path) as at:
        at.send("a")
        at.sessions.register(Member("client", GROUP))
        batch = await at.receive(renew=True, client_id="client")
        assert bodies(batch.messages) == ["a"]  # neither sent nor released
        assert await at.take() == []
        await at.timers.advance(61)
        assert numbers(await at.take()) == [2]


async def test_who_holds_a_message_is_noted_when_it_has_arrived_and_when_the_store_stops(tmp_path: Path) -> None:
    """A store was killed with an answer on its way: its living client waited for the message, for three hours."""
    async with scene(tmp_path) as at:
        at.send("a", "b", "c")
        at.sessions.register(Member("client", GROUP))
        await at.take(1, renew=True, client_id="client")
        progress = at.ledger.progress(Place(GROUP, TOPIC, 0))
        assert progress is not None
        assert progress.holdings.keys() == set()
        await at.timers.advance(3)
        await at.take(1, renew=True, client_id="client")
        await at.timers.advance(3)
        assert progress.holdings.keys() == {0}
        await at.take(1, renew=True, client_id="client")
        await at.receiving.stop()
        assert progress.holdings.keys() == {0, 1, 2}


async def test_what_was_sent_on_a_connection_that_ended_at_once_is_not_renewed(tmp_path: Path) -> None:
    """The kernel took the answer; whether its client did is not known, and it lives on with another connection."""
    async with scene(tmp_path) as at:
        at.send("a", "b")
        member = Member("client", GROUP)
        at.sessions.register(member)
        connections = [True, True]
        await at.take(1, lambda: connections[0], renew=True, client_id="client")
        await at.take(1, lambda: connections[1], renew=True, client_id="client")
        connections[0] = False
        await at.timers.advance(6)
        connections[1] = False
        for _ in range(3):
            await at.timers.advance(30)
            at.sessions.heard_of(member)
        assert (bodies(again := await at.take()), numbers(again)) == (["a"], [2])


async def test_what_was_changed_before_its_answer_had_arrived_is_not_renewed(tmp_path: Path) -> None:
    async with scene(tmp_path) as at:
        at.send("a", "b")
        at.sessions.register(Member("client", GROUP))
        held = await at.take(renew=True, client_id="client")
        await at.receiving.change_invisible(GROUP, TOPIC, held[0].handle, 10_000)
        await at.timers.advance(11)
        assert (bodies(again := await at.take()), numbers(again)) == (["a"], [2])


async def test_what_a_client_held_that_says_it_is_gone_comes_again_in_a_second(tmp_path: Path) -> None:
    async with scene(tmp_path) as at:
        at.send("a", "b")
        held = await at.take(renew=True, client_id="client")
        at.receiving.gone(GROUP, "others")
        assert await at.take() == []
        at.receiving.gone(GROUP, "client")
        await at.timers.advance(0.9)
        assert await at.take() == []
        assert [one.error for one in await at.acknowledge(held[:1])] == [None], "it was on its way"
        await at.timers.advance(0.1)
        assert (bodies(again := await at.take()), numbers(again)) == (["b"], [2])


async def test_what_members_hold_that_leave_because_the_store_stops_stays_theirs(tmp_path: Path) -> None:
    async with scene(tmp_path) as at:
        at.send("a")
        at.sessions.register(member := Member("client", GROUP))
        await at.take(renew=True, client_id="client")
        at.receiving.drain()
        at.sessions.unregister(member)
        at.ledger.come_due(at.clock.now_ms())
        assert at.ledger.in_flight(Place(GROUP, TOPIC, 0)) == 1


async def beats(at: Scene, held: list[GivenMessage]) -> None:
    at.sessions.register(Member("client", GROUP))


async def receives(at: Scene, held: list[GivenMessage]) -> None:
    assert await at.take(renew=True, client_id="client") == []


async def acknowledges(at: Scene, held: list[GivenMessage]) -> None:
    assert [one.error for one in await at.acknowledge(held[1:])] == [None]


@pytest.mark.parametrize("sign", [beats, receives, acknowledges])
async def test_who_held_messages_before_a_start_has_another_minute_when_it_gives_a_sign_of_life(
    tmp_path: Path, sign: Callable[[Scene, list[GivenMessage]], Awaitable[None]]
) -> None:
    async with scene(tmp_path) as at:
        at.send("a", "b")
        held = await at.take(renew=True, client_id="client")
        await at.timers.advance(40)
        await at.receiving.stop()
        at.receiving.start()
        await at.timers.advance(15)
        await sign(at, held)
        await at.timers.advance(59)
        assert await at.take() == []
        assert [one.error for one in await at.acknowledge(held[:1])] == [None]


async def test_a_client_that_does_not_come_back_holds_nothing_any_more(tmp_path: Path) -> None:
    async with scene(tmp_path) as at:
        at.send("a")
        await at.take(renew=True, client_id="client")
        await at.receiving.stop()
        at.receiving.start()
        await at.timers.advance(61)
        assert numbers(await at.take(renew=True, client_id="another")) == [2]
        at.sessions.register(Member("client", GROUP))
        at.sessions.register(Member("another", GROUP))
        at.receiving.gone(GROUP, "client")
        await at.timers.advance(100)
        assert await at.take() == []


async def test_operators_see_how_a_group_stands(tmp_path: Path) -> None:
    async with scene(tmp_path) as at:
        at.topic(queues=2)
        at.send("a", "b", "c")
        at.send("d", queue=1)
        await at.take(2, queue=0)
        assert at.receiving.figures is not None
        await at.receiving.figures.refresh()
        now = at.kit.clock.now
        assert at.receiving.figures_now() == [GroupFigures(GROUP, TOPIC, 4, 2, 2, 1, now, now)]


async def held_with_renewal(at: Scene, queues: int) -> tuple[Member, list[GivenMessage]]:
    """A client that holds two messages of each queue."""
    at.topic(queues=queues)
    for queue in range(queues):
        at.send("a", "b", queue=queue)
    member = Member("client", GROUP)
    at.sessions.register(member)
    given = []
    for _ in range(queues):
        given += await at.take(2, renew=True, client_id="client")
    return member, given


def _is_given_back(at: Scene, queue: int) -> bool:
    """Whether what was held of a queue is due within the second that a client has that is gone."""
    progress = at.ledger.progress(Place(GROUP, TOPIC, queue))
    assert progress is not None
    return all(one.due <= at.clock.now_ms() + GRACE_MS for one in progress.entries.values())


async def given_back(at: Scene) -> int:
    """How many messages come again when all turns are over."""
    for _ in range(5):
        await turns()
    at.timers.each_look = 0.0
    await at.timers.advance(1)
    return len(await at.take())


async def test_what_is_acknowledged_while_a_client_that_is_gone_gives_back_does_not_keep_the_rest(
    tmp_path: Path,
) -> None:
    """All of an answer was looked at first, and one turn later taken for what is still given out."""
    async with scene(tmp_path) as at:
        at.topic(queues=3)
        for queue in range(3):
            at.send("a", "b", queue=queue)
        given = await at.take(6, renew=True, client_id="client")
        at.timers.each_look = 0.01
        at.receiving.gone(GROUP, "client")
        [first] = [queue for queue in range(3) if _is_given_back(at, queue)]
        late = [one for one in given if decode_record(one.record).queue_id != first]
        assert [one.error for one in await at.acknowledge(late[:1])] == [None]
        assert await given_back(at) == 5


async def test_a_client_that_is_gone_while_it_is_renewed_gives_all_back(tmp_path: Path) -> None:
    async with scene(tmp_path) as at:
        member, given = await held_with_renewal(at, 3)
        await at.timers.advance(7)
        await at.acknowledge(given[:2])
        at.timers.each_look = 0.01
        at.receiving._there.renewals._look()
        at.sessions.unregister(member)
        assert await given_back(at) == 4


async def test_a_client_that_is_gone_while_its_answers_arrive_gives_all_back(tmp_path: Path) -> None:
    async with scene(tmp_path) as at:
        member, _ = await held_with_renewal(at, 4)
        at.timers.now += 6
        at.timers.each_look = 0.01
        at.receiving._there.renewals._arrived()
        at.sessions.unregister(member)
        assert await given_back(at) == 8


async def test_what_a_client_gets_while_two_look_at_what_it_holds_is_remembered(tmp_path: Path) -> None:
    async with scene(tmp_path) as at:
        await held_with_renewal(at, 1)
        await at.timers.advance(7)
        renewals, holder, others = at.receiving._there.renewals, (GROUP, "client"), Place(GROUP, TOPIC, 1)
        renewals._remember(holder, others, range(300))  # all of them are dealt with
        one, two = renewals._held_by(holder), renewals._held_by(holder)
        for look in (one, two):
            assert next(look).place == Place(GROUP, TOPIC, 0)
        assert [held.offsets for held in one] == [[], []]
        renewals._remember(holder, others, [7])
        for _ in two:
            pass
        assert renewals._given[holder] == {Place(GROUP, TOPIC, 0): {0, 1}, others: {7}}
