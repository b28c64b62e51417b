"""The broker in the front's own process, as the front asks it."""

import asyncio
from collections.abc import Sequence

from tandemmq.common.errors import TandemError
from tandemmq.store.broker.send import NewMessage
from tandemmq.store.broker.submission import Receipt
from tandemmq.store.broker.topics import TopicConfig
from tandemmq.store.delivery.delays.recalls import recall_handle
from tandemmq.store.delivery.delivery import Delivery
from tandemmq.store.delivery.members.groups import GroupConfig
from tandemmq.store.delivery.port import ConsumingPort
from tandemmq.store.delivery.transactions.handle import TransactionHandle
from tandemmq.store.fronts.broker_port import BrokerTopic, StoredMessage


class DirectPort:
    """A `BrokerPort` without anything between. Nothing suspends where there is nothing to wait for."""

    def __init__(
        self,
        name: str,
        delivery: Delivery,
    ) -> None:
        """`name`: the broker's."""
        self._delivery = delivery
        self.sessions = delivery.sessions
        self.group = delivery.groups.get
        self._name = name
        self._broker = delivery.broker

    @property
    def leads(self) -> bool:
        """See `BrokerPort`."""
        mastership = self._broker.store.replica.mastership
        return not mastership.is_slave and not mastership.fenced_by

    def delivery(self, user: str) -> ConsumingPort:
        """See `BrokerPort`."""
        return self._delivery

    async def topic(self, name: str, user: str) -> Sequence[BrokerTopic]:
        """See `BrokerPort`."""
        found = self._broker.topics.get(name)
        return () if found is None else (BrokerTopic(self._name, found),)

    async def create_topic(self, config: TopicConfig, user: str) -> Sequence[BrokerTopic]:
        """See `BrokerPort`."""
        if not self.leads:
            return (BrokerTopic(self._name, config),)
        await self._broker.sender.create({config.name: config})
        return await self.topic(config.name, user)

    async def find_group(self, name: str) -> GroupConfig | None:
        """See `BrokerPort`."""
        return self.group(name)

    async def send(self, messages: Sequence[NewMessage], user: str) -> list[StoredMessage | TandemError]:
        """See `BrokerPort`."""
        if len(messages) > 1:
            return await self._submitted(messages)
        try:
            return [stored(await self._broker.send(messages[0]))]
        except TandemError as error:
            return [error]

    async def _submitted(self, messages: Sequence[NewMessage]) -> list[StoredMessage | TandemError]:
        outcomes: dict[int, StoredMessage | TandemError] = {}
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()

        def told(number: int, outcome: Receipt | TandemError) -> None:
            outcomes[number] = outcome if isinstance(outcome, TandemError) else stored(outcome)
            if len(outcomes) == len(messages) and not done.done():
                done.set_result(None)

        self._broker.submit(messages, told)
        await done
        return [outcomes[number] for number in range(len(messages))]


def stored(receipt: Receipt) -> StoredMessage:
    """What a producer is told of a receipt."""
    ready, place, status = receipt
    key = ready.unique_key
    transaction = str(TransactionHandle(key, place.queue_offset, place.physical_offset)) if ready.transaction else key
    return StoredMessage(key, transaction, place.queue_offset, recall_handle(ready), status)
