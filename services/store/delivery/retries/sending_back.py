"""Sending back: a classic consumer's message comes again after a delay level, as a copy in the group's retry topic.

RocketMQ: ``AbstractSendMessageProcessor.consumerSendMsgBack``. The message itself is acknowledged by the consumer's
offset, so nothing is noted here.
"""

from collections.abc import Mapping

from tandemmq.common.topic_names import RETRY
from tandemmq.store.broker.errors import MessageNotFound
from tandemmq.store.broker.postponing import DelayRules, orders_for, postpone
from tandemmq.store.broker.reading import read_intact
from tandemmq.store.broker.topics import TopicConfig, TopicTable
from tandemmq.store.delivery.journal.journal import Journal
from tandemmq.store.delivery.members.groups import GroupConfig
from tandemmq.store.delivery.retries.copies import internal_copy
from tandemmq.store.delivery.retries.dead_letters import Graveyard, origin_of
from tandemmq.store.format import properties
from tandemmq.store.format.host import Host
from tandemmq.store.format.record import decode_record
from tandemmq.store.log.edges.clock import Clock
from tandemmq.store.log.message_store import MessageStore

_FIRST_LEVEL = 3
"""Of the first retry, where the consumer leaves it to the broker: 10 seconds."""


class SendBacks:
    """Makes the copies."""

    def __init__(
        self,
        store: MessageStore,
        topics: TopicTable,
        journal: Journal,
        graveyard: Graveyard,
        store_host: Host,
        rules: DelayRules,
        wall: Clock,
    ) -> None:
        """`rules`, `wall`: how long, and by which clock, copies can wait."""
        self._store = store
        self._topics = topics
        self._journal = journal
        self._graveyard = graveyard
        self._host = store_host
        self._rules = rules
        self._wall = wall
        self._turn = 0

    def check(self, physical_offset: int) -> None:
        """Whether a message lies there. Raises MessageNotFound."""
        if read_intact(self._store, physical_offset) is None:
            raise MessageNotFound(f"No message begins at log offset {physical_offset}.")

    async def send_back(self, group: GroupConfig, physical_offset: int, delay_level: int, most: int) -> int:
        """Copy the record at a log offset; gives the log offset after the copy, or 0 if there is none to be.

        `most`: deliveries after the first, 0 for the group's.

        Raises:
            MessageNotFound: no message lies there. StoreError, TableNotSaved: it could not be written.
        """
        if group.retry_queues <= 0:
            return 0
        topic = RETRY + group.name
        data = read_intact(self._store, physical_offset)
        if data is None:
            raise MessageNotFound(f"No message begins at log offset {physical_offset}.")
        if self._topics.get(topic) is None:
            await self._topics.add([TopicConfig(topic, group.retry_queues, group.retry_queues)])
        record = decode_record(data, verify=False)
        times = record.reconsume_times
        limit = most if most > 0 else group.retry_max_times
        if delay_level < 0 or 0 <= limit <= times:
            await self._graveyard.open(group.name)
            letter = self._graveyard.letter(data, group.name, times + 1)
            self._graveyard.count(group.name, record.properties.get(properties.RETRY_TOPIC) or record.topic)
            return self._journal.copy(letter).end_offset
        config = self._topics.get(topic)
        queues = group.retry_queues if config is None else config.write_queues
        self._turn += 1
        queue, now = self._turn % max(queues, 1), self._wall.now_ms()
        extra = {**origin_of(record, self._host, record.topic), **self._orders(group, times, delay_level, now)}
        waits = postpone(topic, queue, extra, now, self._rules)
        to, to_queue = (topic, queue) if waits is None else (waits.topic, waits.queue_id)
        message = internal_copy(record, to, to_queue, self._host, extra=extra, reconsume_times=times + 1)
        return self._journal.copy(message).end_offset

    def _orders(self, group: GroupConfig, times: int, delay_level: int, now: int) -> Mapping[str, str]:
        """The wait: the level that was asked for, by the group's policy, or RocketMQ's levels from the third on."""
        if not delay_level and group.retry_policy:
            orders = orders_for(group.back_off_ms(times + 1), now, self._rules)
            if orders is not None:
                return orders
        return {properties.DELAY: str(delay_level or _FIRST_LEVEL + times)}
