"""BrokerCluster: all brokers as one: the `BrokerPort` of a gateway."""

import asyncio
from collections.abc import Mapping, Sequence

from tandemmq.broker.v1 import broker_pb2
from tandemmq.common.errors import TandemError
from tandemmq.common.timers import Timers
from tandemmq.gateway import questions
from tandemmq.gateway.choosing import chosen, message_group, message_id
from tandemmq.gateway.clients import GatewaySessions
from tandemmq.gateway.cluster_delivery import ClusterDelivery, Polls
from tandemmq.gateway.cluster_tables import ClusterTables
from tandemmq.gateway.questions import Answer, Question
from tandemmq.gateway.remote_broker import ELSEWHERE, HELD_SECONDS, RemoteBroker
from tandemmq.gateway.tokens import Tokens
from tandemmq.store.broker.send import NewMessage
from tandemmq.store.broker.topics import TopicConfig
from tandemmq.store.delivery.members.groups import GroupConfig
from tandemmq.store.delivery.port import ConsumingPort
from tandemmq.store.fronts.broker_port import BrokerTopic, StoredMessage

SOON_SECONDS = 1.0
"""A message that another broker could take waits so long for the one that knows it, if that was sent before."""


class BrokerCluster:
    """All brokers. A `BrokerPort`."""

    def __init__(self, brokers: Mapping[str, RemoteBroker], timers: Timers, *, fill: bool) -> None:
        """`fill`: make topics and groups at a broker that others have and it has not."""
        self.brokers = brokers
        self.sessions = GatewaySessions(timers, tuple(brokers.values()))
        self._tables = ClusterTables(brokers, fill=fill)
        self.tokens = Tokens(brokers)
        self._polls = Polls()
        for broker in brokers.values():
            broker.linked = self.sessions.tell_all
            broker.checks = self._check
            broker.member_asked = self.sessions.pass_on

    def start(self) -> None:
        """Look for all masters from now on."""
        for broker in self.brokers.values():
            broker.start()

    def drain(self) -> None:
        """End receives that wait: the gateway stops."""
        self._polls.drain()

    async def stop(self) -> None:
        """End all links."""
        await asyncio.gather(*(broker.stop() for broker in self.brokers.values()))

    @property
    def stopping(self) -> bool:
        """Whether the gateway stops: nothing is given out any more."""
        return self._polls.stopping

    # -- what the front asks ----------------------------------------------------------------------------------------

    @property
    def leads(self) -> bool:
        """See `BrokerPort`. A gateway finds the masters."""
        return True

    def delivery(self, user: str) -> ConsumingPort:
        """See `BrokerPort`."""
        return ClusterDelivery(self._tables, self.tokens, self.sessions, self._polls, user)

    async def topic(self, name: str, user: str) -> Sequence[BrokerTopic]:
        """See `BrokerPort`."""
        return await self._tables.topic(name, user)

    async def create_topic(self, config: TopicConfig, user: str) -> Sequence[BrokerTopic]:
        """See `BrokerPort`."""
        await self._tables.create_topic(config, user)
        return await self._tables.topic(config.name, user)

    async def find_group(self, name: str) -> GroupConfig | None:
        """See `BrokerPort`."""
        return await self._tables.find_group(name)

    def group(self, name: str) -> GroupConfig | None:
        """See `BrokerPort`."""
        return self._tables.group(name)

    async def send(self, messages: Sequence[NewMessage], user: str) -> list[StoredMessage | TandemError]:
        """See `BrokerPort`. Those of one message group go in their order."""
        if len(messages) == 1:
            return [await self._send(messages[0], user)]
        return list(await asyncio.gather(*(self._send(message, user) for message in messages)))

    async def _send(self, message: NewMessage, user: str) -> StoredMessage | TandemError:
        question = questions.send(message)
        question.user = user
        try:
            group = message_group(message.properties)
            if group is not None:
                broker = self.brokers[chosen(group, self.brokers)]
                answer = await broker.ask(question, patience=HELD_SECONDS)
            else:
                broker, answer = await self._send_to_any(question, message, user)
        except TandemError as error:
            return error
        return self.stored(broker, answer)

    def stored(self, broker: RemoteBroker, answer: Answer) -> StoredMessage:
        """What became of a message that a broker has stored; its tokens name the broker."""
        stored = questions.stored(answer.stored)
        made = self.tokens.made
        transaction, recall = stored.transaction_id, stored.recall_handle
        return stored._replace(
            transaction_id=transaction if transaction == stored.message_id else made(broker.name, transaction),
            recall_handle=recall and made(broker.name, recall),
        )

    async def _send_to_any(self, question: Question, message: NewMessage, user: str) -> tuple[RemoteBroker, Answer]:
        """A message without a message group: when its broker does not come back soon it goes to another one."""
        found = await self._tables.topic(message.topic, user)
        writable = [one.broker for one in found if one.config.writable] or [one.name for one in self._tables.there()]
        key = message_id(message.properties)
        while True:
            linked = [name for name in writable if self.brokers[name].link is not None] or writable
            broker = self.brokers[chosen(key, linked)]
            others = [name for name in writable if name != broker.name]
            try:
                return broker, await broker.ask(question, SOON_SECONDS if others else None, HELD_SECONDS)
            except TandemError as error:
                if error.kind not in ELSEWHERE or not others:
                    raise
                writable = others

    # -- what brokers ask -------------------------------------------------------------------------------------------

    def _check(self, broker: RemoteBroker, asked: broker_pb2.Check) -> None:
        command = questions.check(asked)
        self.sessions.ask(asked.session, command._replace(handle=self.tokens.made(broker.name, command.handle)))
