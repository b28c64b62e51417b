"""Looks at delivery, in the first moment of a store and where nothing is given out."""

import asyncio
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from tandemmq.delivery.v1 import operations_pb2 as pb
from tandemmq.store.delivery.errors import NotDelivering
from tandemmq.store.delivery.figures.views import Views
from tandemmq.store.delivery.members.sessions import Member, Sessions
from tandemmq.store.fronts.native import operations_answers
from tests.manual_timers import ManualTimers
from tests.turn_counter import TurnCounter
from tests.unit.delivery.delivery_kit import delivering


class Seeing:
    """Views of clients that are there, and of nothing else."""

    def __init__(self) -> None:
        self.timers = ManualTimers()
        self.sessions = Sessions(self.timers)
        self.views = Views(
            cast(
                Any,
                SimpleNamespace(
                    store=SimpleNamespace(timers=self.timers),
                    sessions=self.sessions,
                    ways=SimpleNamespace(of=lambda _: frozenset()),
                    receiving=None,
                    begun=self._begun,
                ),
            )
        )

    async def _begun(self) -> None:
        pass


async def test_who_asks_while_the_journal_is_read_waits_for_it(tmp_path: Path) -> None:
    async with delivering(tmp_path) as at:
        await at.send("orders", 3)
    async with delivering(tmp_path, ready=False) as at:
        assert not at.delivery.delivering
        await Views(at.delivery).check()
        assert at.delivery.delivering


async def test_a_slave_says_at_once_that_it_gives_out_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tandemmq.store.delivery.delivery._BEGIN_SECONDS", 3_600.0)
    async with delivering(tmp_path, ready=False, broker_role="SLAVE", broker_id=1) as at:
        with pytest.raises(NotDelivering, match="no master"):
            await asyncio.wait_for(Views(at.delivery).groups(), 60)


async def test_topics_to_which_members_do_not_subscribe_alike() -> None:
    at = Seeing()
    each = ({"a": "*", "b": "x", "c": "*"}, {"a": "*", "b": "y", "c": "*"}, {"a": "*"})
    for number, subscriptions in enumerate(each):
        at.sessions.register(Member(f"{number}", "group", subscriptions=subscriptions))
    at.sessions.register(Member("producer", "group", producer=True))
    [view] = await at.views.groups(["group"])
    assert (view.consumers, view.differing_topics) == (3, ["b", "c"])
    assert [one.client_id for one in view.members] == ["0", "1", "2", "producer"]


async def test_a_group_with_many_members_is_told_in_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    at = Seeing()
    for number in range(2_000):
        at.sessions.register(Member(f"client-{number * 7 % 2_000:05}", "group", subscriptions={"topic": "*"}))
    at.timers.each_look = 0.01
    member = operations_answers._member
    with TurnCounter.counting() as count:

        def counted(*arguments: Any) -> Any:
            count()
            return member(*arguments)

        monkeypatch.setattr(operations_answers, "_member", counted)
        [view] = await at.views.groups(["group"])
        answer = pb.ViewGroupsResponse()
        await operations_answers.group_view(answer, view, 0.0, at.views.slices(), with_members=True)
        assert (count.all, count.most) == (2_000, 32)
    [told] = answer.groups
    assert [one.client_id for one in told.members] == [f"client-{number:05}" for number in range(2_000)]
    assert (told.consumers, told.producers, list(told.differing_topics)) == (2_000, 0, [])
