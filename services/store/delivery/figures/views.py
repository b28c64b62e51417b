"""What operators see of one moment: groups with members and ways, single messages, what waits, half messages."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import NamedTuple

from tandemmq.common.slices import Slices, each, in_order
from tandemmq.store.delivery.delivery import Delivery
from tandemmq.store.delivery.figures.figures import GroupFigures
from tandemmq.store.delivery.figures.standings import OpenMessage, Standings
from tandemmq.store.delivery.figures.waiting_figures import WaitingFigures
from tandemmq.store.delivery.ledger.ways import Way
from tandemmq.store.delivery.members.sessions import Member, Sessions
from tandemmq.store.delivery.receiving.receiving import Receiving
from tandemmq.store.delivery.transactions.transactions import HalfView

_LOOKED_AT = 20
"""So many groups are looked at while somebody waits; of more, what was seen some seconds ago is good enough."""


class GroupView(NamedTuple):
    """One group."""

    group: str
    figures: list[GroupFigures]
    """By topic."""
    members: list[Member]
    """Consumers first, by client."""
    consumers: int
    """How many of them receive."""
    ways: frozenset[Way]
    differing_topics: list[str]
    """Topics to which consumers do not subscribe alike: each should want the same messages."""


class Views:
    """Looks at delivery. Calls wait for a master that has just started; each raises NotDelivering on other stores."""

    def __init__(self, delivery: Delivery) -> None:
        self._delivery = delivery

    @property
    def now_seconds(self) -> float:
        """By the clock of `Member.last_seen`."""
        return self._delivery.store.timers.time()

    async def sessions(self) -> Sessions:
        """The clients that are there."""
        await self.check()
        return self._delivery.sessions

    async def groups(self, names: Iterable[str] = ()) -> list[GroupView]:
        """The groups of these names, or all, by name. A few are looked at now, the numbers of many are seconds old."""
        await self.check()
        sessions, ways, receiving = self._delivery.sessions, self._delivery.ways, self._delivery.receiving
        wanted, slices = sorted(set(names)), self.slices()
        figures: dict[str, list[GroupFigures]] = {}
        if isinstance(receiving, Receiving):
            now = 0 < len(wanted) <= _LOOKED_AT
            each = [await receiving.figures_of(name) for name in wanted] if now else [receiving.figures_now()]
            found = [one for figures_of in each for one in figures_of]
            for one in found:
                figures.setdefault(one.group, []).append(one)
                await slices.pause()
        wanted = wanted or sorted({*figures, *sessions.groups()})
        views = []
        for name in wanted:
            seen, members = figures.get(name, []), await in_order(sessions.members(name), _by_client, slices)
            if seen or members:
                consumers = [one for one in members if not one.producer]
                differing = await _differing(consumers, slices)
                views.append(GroupView(name, seen, members, len(consumers), ways.of(name), differing))
            await slices.pause()
        return views

    async def messages(self, wanted: Mapping[tuple[str, int], Collection[int]]) -> list[OpenMessage]:
        """Where messages stand, by topic and queue, in the groups that have not dealt with them."""
        standings = await self._standings()
        return [] if standings is None else await standings.of_messages(wanted)

    async def failing(self, group: str, most: int) -> list[OpenMessage]:
        """A group's messages that have failed, those first that came most often."""
        standings = await self._standings()
        return [] if standings is None else await standings.failing(group, most)

    async def _standings(self) -> Standings | None:
        await self.check()
        receiving = self._delivery.receiving
        return receiving.standings if isinstance(receiving, Receiving) else None

    def slices(self) -> Slices:
        """For those who do something with each of many views."""
        return Slices(self._delivery.store.timers)

    async def waiting(self) -> WaitingFigures:
        """What is delivered later, as it is now."""
        await self.check()
        keeper = self._delivery.waiting
        return WaitingFigures() if keeper is None else keeper.read()

    async def halves(self, most: int) -> list[HalfView]:
        """Half messages, those that began first."""
        await self.check()
        transactions = self._delivery.transactions
        return [] if transactions is None else transactions.pending(most)

    async def check(self) -> None:
        """Whether this store delivers. Raises NotDelivering."""
        await self._delivery.begun()


def _by_client(member: Member) -> tuple[bool, str]:
    return member.producer, member.client_id


async def _differing(consumers: Sequence[Member], slices: Slices) -> list[str]:
    """Topics to which some of the consumers subscribe otherwise than others, or not at all."""
    said: dict[str, tuple[str, int]] = {}  # what the first says, and how many say the same

    def count(consumer: Member) -> None:
        for topic, expression in consumer.subscriptions.items():
            first, many = said.get(topic, (expression, 0))
            said[topic] = first, many + (expression == first)

    await each(count, consumers, slices)
    return sorted(topic for topic, (_, many) in said.items() if many < len(consumers))
