"""RetrySends: messages that a consumer sends to its group's retry topic itself.

Those are what it could not send back, and what ordered consumers gave up. One that was consumed as often as may be
becomes a dead letter.

RocketMQ: ``SendMessageProcessor.handleRetryAndDLQ``.
"""

from tandemmq.common.topic_names import RETRY, dead_letter_topic
from tandemmq.store.broker.broker import Broker
from tandemmq.store.broker.send import NewMessage
from tandemmq.store.broker.submission import Receipt
from tandemmq.store.broker.topics import TopicConfig
from tandemmq.store.delivery.members.groups import GroupTable
from tandemmq.store.delivery.members.queue_locks import QueueLocks
from tandemmq.store.delivery.receiving.receive_rules import admitted
from tandemmq.store.format import properties as names
from tandemmq.store.fronts.remoting.sent_message import SendHeader


def group_of_retry(topic: str) -> str | None:
    """The group whose retry topic it is."""
    return topic.removeprefix(RETRY) if topic.startswith(RETRY) else None


class RetrySends:
    """Stores them."""

    def __init__(self, broker: Broker, groups: GroupTable, locks: QueueLocks, *, create_groups: bool) -> None:
        self._broker = broker
        self._groups = groups
        self._locks = locks
        self._create = create_groups

    async def send(self, header: SendHeader, message: NewMessage) -> Receipt:
        """Store one. Raises as `Broker.send`, UnknownGroup, ForbiddenGroup, BadDelivery, TableNotSaved."""
        await self._prepare(header, message)
        return await self._broker.send(message)

    async def _prepare(self, header: SendHeader, message: NewMessage) -> None:
        group = await admitted(header.topic.removeprefix(RETRY), self._groups, create=self._create)
        asked = header.most_reconsume_times
        most = group.retry_max_times if asked is None else asked
        times = message.reconsume_times
        spent = times > most or (times == most and self._locks.any(group.name))
        if most >= 0 and spent:
            self._make_dead_letter(group.name, message)
            await self._make_topic(message.topic, 1)
        else:
            await self._make_topic(message.topic, max(group.retry_queues, 1))

    @staticmethod
    def _make_dead_letter(group: str, message: NewMessage) -> None:
        given = message.properties
        message.topic, message.queue_id = dead_letter_topic(group), 0
        for name in (names.DELAY, names.TIMER_DELAY_MS, names.TIMER_DELAY_SEC, names.TIMER_DELIVER_MS):
            given.pop(name, None)
        origin = given.get(names.RETRY_TOPIC)
        if origin:
            given.setdefault(names.DLQ_ORIGIN_TOPIC, origin)
        first = given.get(names.ORIGIN_MESSAGE_ID) or given.get(names.UNIQ_KEY)
        if first:
            given.setdefault(names.DLQ_ORIGIN_MESSAGE_ID, first)

    async def _make_topic(self, topic: str, queues: int) -> None:
        if self._broker.topics.get(topic) is None:
            await self._broker.sender.create({topic: TopicConfig(topic, queues, queues)})
