"""ClusterTables: the topics and groups of all brokers, as one: made on each, and where one lacks what others have."""

import asyncio
import itertools
from collections.abc import Awaitable, Mapping, Sequence
from typing import TypeVar

from tandemmq.common.errors import TandemError
from tandemmq.common.log_output import get_log
from tandemmq.gateway import questions
from tandemmq.gateway.errors import BrokerAway
from tandemmq.gateway.questions import Question
from tandemmq.gateway.remote_broker import ELSEWHERE, HELD_SECONDS, RemoteBroker
from tandemmq.store.broker.topics import TopicConfig
from tandemmq.store.delivery.members.groups import GroupConfig
from tandemmq.store.fronts.broker_port import BrokerTopic

log = get_log(__name__)

T = TypeVar("T")


class ClusterTables:
    """What the brokers have. Those that are down are left out."""

    def __init__(self, brokers: Mapping[str, RemoteBroker], *, fill: bool) -> None:
        """`fill`: make at a broker what others have and it has not."""
        self.brokers = brokers
        self._fill = fill
        self._turns = itertools.count()

    def in_turn(self) -> list[RemoteBroker]:
        """All brokers, beginning with another one each time."""
        all_of_them = list(self.brokers.values())
        first = next(self._turns) % len(all_of_them)
        return all_of_them[first:] + all_of_them[:first]

    def with_topic(self, name: str) -> list[RemoteBroker]:
        """Those with messages of a topic that was looked up a moment ago, `in_turn`; all where it is nowhere.

        One that is away counts: it may come back with some.
        """
        brokers = self.in_turn()
        having = [
            broker
            for broker in brokers
            if broker.link is None or ((topic := broker.topics.get(name)) is not None and topic.readable)
        ]
        return having or brokers

    def there(self) -> list[RemoteBroker]:
        """Those that answer, or did a moment ago. Raises BrokerAway where there is none."""
        found = [broker for broker in self.brokers.values() if broker.there]
        if not found:  # what is sent now is held: any of them may come back
            found = [broker for broker in self.brokers.values() if broker.was_there(HELD_SECONDS)]
        if not found:
            raise BrokerAway("No broker answers.", remedy="See the gateway's log for why.")
        return found

    # -- topics -----------------------------------------------------------------------------------------------------

    async def topic(self, name: str, user: str) -> Sequence[BrokerTopic]:
        """A topic, at each broker that has it. Raises BrokerAway where nobody answers."""
        brokers = self.there()
        found: Sequence[TopicConfig | None] = [broker.topics.get(name) for broker in brokers]
        if None in found:
            found = await _of_those_that_answer([broker.topics.find(name) for broker in brokers])
            found = await self._topics_everywhere(brokers, found, user)
        return [
            BrokerTopic(broker.name, topic) for broker, topic in zip(brokers, found, strict=True) if topic is not None
        ]

    async def _topics_everywhere(
        self, brokers: Sequence[RemoteBroker], found: Sequence[TopicConfig | None], user: str
    ) -> Sequence[TopicConfig | None]:
        """What was found, once more after making it where it is missing."""
        model = next((topic for topic in found if topic is not None), None)
        lacking = [broker for broker, topic in zip(brokers, found, strict=True) if topic is None and broker.link]
        if not self._fill or model is None or not lacking:
            return found
        for broker in lacking:
            try:
                await self._make_topic(broker, model, user)
            except TandemError as error:
                log.warning("a topic is missing", broker=broker.name, topic=model.name, reason=error.message)
        return await _of_those_that_answer([broker.topics.find(model.name) for broker in brokers])

    async def create_topic(self, config: TopicConfig, user: str) -> None:
        """Make a topic at all brokers that answer. Raises BrokerAway, BrokerRefusal: it may be there at some."""
        await asyncio.gather(*(self._make_topic(broker, config, user) for broker in self.there()))

    async def _make_topic(self, broker: RemoteBroker, config: TopicConfig, user: str) -> None:
        entry = questions.entry(config.name, config.to_json())
        await broker.ask(Question(user=user, create_topic=entry))

    # -- groups -----------------------------------------------------------------------------------------------------

    def group(self, name: str) -> GroupConfig | None:
        """A group as it was when it was last found."""
        return next((found for one in self.brokers.values() if (found := one.groups.get(name)) is not None), None)

    async def find_group(self, name: str) -> GroupConfig | None:
        """A group, at any broker that has it. Raises BrokerAway where nobody answers."""
        known = self.group(name)
        if known is not None:
            return known
        found = await _of_those_that_answer([broker.groups.find(name) for broker in self.there()])
        return next((one for one in found if one is not None), None)

    async def prepare_group(self, name: str, broker: RemoteBroker, user: str) -> None:
        """Have a broker know a group as the others do, before it makes one with that name itself.

        Raises BrokerAway, BrokerRefusal.
        """
        if broker.groups.get(name) is not None or len(self.brokers) == 1 or await broker.groups.find(name) is not None:
            return
        known = await self.find_group(name)
        if known is not None:
            entry = questions.entry(name, known.to_json())
            await broker.ask(Question(user=user, create_group=entry))


async def _of_those_that_answer(asked: Sequence[Awaitable[T | None]]) -> list[T | None]:
    """The answers; None of brokers that are away. Raises their refusals, and BrokerAway if nobody answers."""
    answers: list[T | None] = []
    away: TandemError | None = None
    for outcome in await asyncio.gather(*asked, return_exceptions=True):
        if isinstance(outcome, TandemError) and outcome.kind in ELSEWHERE:
            away = outcome
            answers.append(None)
        elif isinstance(outcome, BaseException):
            raise outcome
        else:
            answers.append(outcome)
    if away is not None and len(answers) == 1:
        raise away
    return answers
