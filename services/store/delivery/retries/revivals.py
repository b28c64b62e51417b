"""Messages that consumers of a RocketMQ 5 broker had popped, and not acknowledged: they come again.

RocketMQ moves a group's offset on when messages are popped, and notes the pop aside (`java_pops`). When its invisible
time is over, what was not acknowledged is copied to the group's retry topic, here as there; then the offset of
RocketMQ's own group goes on, so that either broker goes on where the other stopped. The copies lie before it in the
log: a crash in between repeats them.
"""

import asyncio
from collections.abc import Callable

from tandemmq.common.errors import TandemError
from tandemmq.common.log_output import get_log
from tandemmq.store.broker.topics import TopicConfig, TopicTable
from tandemmq.store.delivery.journal.facts import Place
from tandemmq.store.delivery.journal.journal import Journal
from tandemmq.store.delivery.ledger.kept_positions import SystemGroupPosition
from tandemmq.store.delivery.members.groups import GroupConfig, GroupTable
from tandemmq.store.delivery.queue_cursor import QueueCursor
from tandemmq.store.delivery.receiving.handles import Shown, own_topic, topic_shown
from tandemmq.store.delivery.receiving.place_reader import Absence, PlaceReader
from tandemmq.store.delivery.retries.copies import internal_copy
from tandemmq.store.delivery.retries.dead_letters import origin_of
from tandemmq.store.delivery.retries.java_pops import (
    ACK,
    BATCH_ACK,
    CHECKPOINT,
    REVIVE_GROUP,
    REVIVE_TOPICS,
    BadPop,
    Pop,
    PopKey,
    read_acknowledged,
    read_checkpoint,
)
from tandemmq.store.format import properties
from tandemmq.store.format.host import Host
from tandemmq.store.format.record import Record, decode_record
from tandemmq.store.log.edges.clock import Clock
from tandemmq.store.log.errors import StoreError
from tandemmq.store.log.message_store import MessageStore

log = get_log(__name__)

_LOOK_SECONDS = 1.0
_AT_ONCE = 500
_GRACE_MS = 3_000
"""Acknowledgements come to the log a second after their checkpoint."""


class _ReviveLog:
    """One queue of a revive topic: pops that were read, in their order."""

    def __init__(self, store: MessageStore, position: SystemGroupPosition, topic: str, queue_id: int) -> None:
        self.position = position
        self.pops: dict[PopKey, Pop] = {}
        self._cursor = QueueCursor(store, topic, queue_id, position)
        self._cursor.begin()

    def read_on(self) -> bool:
        """Read some more; whether there is still more. Raises StoreError, OSError."""
        cursor = self._cursor
        cursor.pass_expired()
        end = cursor.queue.readable_end
        for unit in cursor.units(end, _AT_ONCE):
            record = cursor.record(unit)
            if record is not None:
                try:
                    self._take(record)
                except BadPop as error:
                    log.error("a note of a pop is passed over", offset=cursor.next, reason=str(error))
        return cursor.next < end

    def _take(self, record: Record) -> None:
        tag = record.properties.get(properties.TAGS)
        if tag == CHECKPOINT:
            pop = read_checkpoint(record.body, record.queue_offset)
            self.pops[pop.key] = pop
        elif tag in (ACK, BATCH_ACK):
            key, offsets = read_acknowledged(record.body)
            pop_of = self.pops.get(key)
            if pop_of is not None:
                pop_of.acknowledged(offsets)


class Revivals:
    """Reads what RocketMQ has noted, and makes the copies; a service of the master."""

    def __init__(
        self,
        store: MessageStore,
        topics: TopicTable,
        groups: GroupTable,
        journal: Journal,
        reader: PlaceReader,
        wall: Clock,
        host: Host,
        timers_current: Callable[[], bool],
    ) -> None:
        """`host`: of the copies. `timers_current`: whether no timer is late; those that are may acknowledge."""
        self._store = store
        self._topics = topics
        self._groups = groups
        self._journal = journal
        self._reader = reader
        self._wall = wall
        self._host = host
        self._timers_current = timers_current
        self._logs: list[_ReviveLog] = []
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begin where RocketMQ's group stands; nothing runs where there is no such log."""
        topics = [topic for topic in self._store.queue_topics() if topic.startswith(REVIVE_TOPICS)]
        names = {(topic, queue) for topic in topics for queue in self._store.queue_ids(topic)}
        for config in self._topics.all():
            if config.name.startswith(REVIVE_TOPICS):
                names |= {(config.name, queue) for queue in range(config.write_queues)}
        for topic, queue in sorted(names):
            position = SystemGroupPosition(self._journal, Place(REVIVE_GROUP, topic, queue), names_last=True)
            self._logs.append(_ReviveLog(self._store, position, topic, queue))
        if self._logs:
            self._task = asyncio.create_task(self._run(), name="messages that were popped at RocketMQ")

    async def stop(self) -> None:
        """End; what is not dealt with is read again."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
            self._task = None
        self._logs.clear()

    async def _run(self) -> None:
        while True:
            await self._store.timers.sleep(_LOOK_SECONDS)
            for one in self._logs:
                try:
                    while one.read_on():
                        await self._store.timers.sleep(0)
                    await self._revive(one)
                except (TandemError, OSError) as error:
                    log.warning("messages that were popped at RocketMQ wait", reason=str(error))

    async def _revive(self, one: _ReviveLog) -> None:
        """Make the copies of pops whose time is over, in order. Raises StoreError, NotDelivering, TableNotSaved."""
        if not one.pops or not self._timers_current():
            return
        for key, pop in list(one.pops.items()):
            if pop.due_ms + _GRACE_MS > self._wall.now_ms():
                return
            group = self._groups.get(key.group) or GroupConfig(key.group)
            retry = own_topic(key.group, "", Shown.RETRY)
            if pop.open and self._topics.get(retry) is None:
                queues = max(group.retry_queues, 1)
                await self._topics.add([TopicConfig(retry, queues, queues)])
            if not self._revive_pop(pop, retry):
                return
            one.position.keep(pop.log_offset + 1)
            del one.pops[key]
            await self._store.timers.sleep(0)

    def _revive_pop(self, pop: Pop, retry: str) -> bool:
        """Copy what is open of a pop; False where it cannot be read now: then it is to be called again."""
        place = Place(pop.key.group, pop.key.topic, pop.key.queue)
        for offset in tuple(pop.open):
            data = self._reader.one(place, offset)
            if data is Absence.LATER:
                return False
            if isinstance(data, bytes):
                self._copy(decode_record(data, verify=False), place, retry)
            pop.open.remove(offset)
        return True

    def _copy(self, record: Record, place: Place, retry: str) -> None:
        extra = origin_of(record, self._host, topic_shown(place))
        times = record.reconsume_times + 1
        try:
            self._journal.copy(internal_copy(record, retry, 0, self._host, extra=extra, reconsume_times=times))
        except StoreError:
            raise
        except TandemError as error:
            log.error("a message that was popped is passed over", topic=place.topic, reason=str(error))
