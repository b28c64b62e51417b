"""The broker port: what a broker does, as calls, whatever protocol those who ask speak.

The calls never suspend where nothing has to be waited for. The order of a send (check, refuse, append, wait for disk
and replicas, status) is here and in `send.py`, and nowhere else.
"""

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from tandemmq.store.broker.acknowledgement import Acknowledgement
from tandemmq.store.broker.group_transfer import PutStatus
from tandemmq.store.broker.long_poll import LongPolls, Room
from tandemmq.store.broker.offsets import Catalog, QueueState, TopicState
from tandemmq.store.broker.pull import Puller
from tandemmq.store.broker.pulled import PullAnswer, PullStatus, Wanted
from tandemmq.store.broker.query import Finder
from tandemmq.store.broker.send import NewBatch, NewMessage, Ready, Sender, SendOutcome, SentAll, new_tuple
from tandemmq.store.broker.submission import Receipt, Submission, Told
from tandemmq.store.broker.topics import TopicConfig, TopicTable
from tandemmq.store.log.errors import QueueInDoubt
from tandemmq.store.log.message_store import MessageStore
from tandemmq.store.log.segments.commit_log import Appended


class Traffic(Protocol):
    """Counts what comes in and goes out."""

    def sent(self, topic: str, messages: int, size: int) -> None:
        """So many messages were stored, whose records have so many bytes together."""
        ...

    def pulled(self, topic: str, group: str, messages: int, size: int) -> None:
        """A consumer group (maybe unnamed) is given so many messages, whose records have so many bytes together."""
        ...

    def transaction_ended(self, topic: str, ending: str, milliseconds: float) -> None:
        """A transaction of a topic was ended as `commit` or `rollback`, so long after its half message was stored."""
        ...


@dataclass(frozen=True, slots=True)
class Broker:
    """One broker, in the store's process, and the parts that it is made of."""

    store: MessageStore
    topics: TopicTable
    sender: Sender
    acknowledgement: Acknowledgement
    puller: Puller
    polls: LongPolls
    finder: Finder
    catalog: Catalog
    traffic: Traffic

    # -- sending ----------------------------------------------------------------------------------------------------

    async def send(self, given: NewMessage, *, wait: bool = True) -> Receipt:
        """Store one message; done when it is as safe as it is to be. Without `wait`, or with WAIT=false, when stored.

        Raises:
            IllegalMessage and its kinds, InSyncReplicasNotEnough: nothing was stored. StoreError: the store cannot take
            it.
        """
        missing: dict[str, TopicConfig] = {}
        ready = self.sender.check(given, missing, wait)
        if missing:
            await self.sender.create(missing)
        ready, place = self.sender.store(ready)
        if not ready.copy:
            self.traffic.sent(ready.message.topic, 1, place.size)
        acknowledgement, status = self.acknowledgement, PutStatus.PUT_OK
        if acknowledgement.waits:
            status = await acknowledgement.status(place.end_offset, ready.wait and wait)
        return new_tuple(Receipt, (ready, place, status))

    def store_at_once(self, given: NewMessage, *, wait: bool = True) -> tuple[Ready, Appended] | None:
        """The first half of `send`, without a coroutine; `Acknowledgement.when_safe` is the other.

        None: a topic must be made first, and nothing is stored. Raises as `send`.
        """
        missing: dict[str, TopicConfig] = {}
        if self.topics.get(given.topic) is None:
            return None
        ready = self.sender.check(given, missing, wait)
        if missing:  # where delayed messages wait
            return None
        ready, place = self.sender.store(ready)
        if not ready.copy:
            self.traffic.sent(ready.message.topic, 1, place.size)
        return ready, place

    async def append(
        self, messages: Sequence[NewMessage], batches: Sequence[NewBatch], *, wait: bool = True
    ) -> SentAll:
        """Store many messages, in order, `messages` first; see `acknowledged`. Raises as `Sender.send_all`."""
        sent = await self.sender.send_all(messages, batches, wait)
        self._count(sent)
        return sent

    async def acknowledged(self, sent: SentAll) -> PutStatus:
        """The status of all that was stored, when that is as safe as it is to be."""
        acknowledgement = self.acknowledgement
        if not acknowledgement.waits:
            return PutStatus.PUT_OK
        return await acknowledgement.status(sent.end_offset, sent.wait)

    def submit(self, items: Sequence[NewMessage], told: Told, *, wait: bool = True) -> None:
        """Store messages of many senders, each for itself; the wait for all of them is one, without a task or a future.

        `told` is called once with the number of each and what became of it: at once where it was refused or has nothing
        to wait for, else when disk and replicas have it. Messages of topics that must be made first follow the others.
        """
        submission = Submission(self.sender, self.acknowledgement, self._count_messages, told, wait=wait)
        submission.begin(items)

    def _count(self, sent: SentAll) -> None:
        self._count_messages(sent.messages)
        for batch in sent.batches:
            if batch.place is not None and not batch.copy:
                size = batch.place.end_offset - batch.place.physical_offsets[0]
                self.traffic.sent(batch.batch.topic, batch.place.count, size)

    def _count_messages(self, sent: Sequence[SendOutcome]) -> None:
        """Count neighbours of the same topic and size, which are most, together."""
        topic, size, messages = "", 0, 0
        for ready, place, _ in sent:
            if place is None or ready.copy:
                continue
            if place.size != size or ready.message.topic != topic:
                if messages:
                    self.traffic.sent(topic, messages, messages * size)
                topic, size, messages = ready.message.topic, place.size, 0
            messages += 1
        if messages:
            self.traffic.sent(topic, messages, messages * size)

    # -- reading ----------------------------------------------------------------------------------------------------

    async def pull(self, wanted: Wanted, wait_seconds: float = 0, room: Room | None = None) -> PullAnswer:
        """Messages of a queue, now, or when there are some before the time is over.

        `room` is awaited before each look with the most bytes that it may give. Raises as `Puller.pull`, `room`, and
        StoreStopping.
        """
        if wait_seconds:
            pulled = await self.polls.pull(self.puller, wanted, wait_seconds, room)
        else:
            pulled = await self.polls.pull_now(self.puller, wanted, room)
        if pulled.status is PullStatus.FOUND:
            self.traffic.pulled(wanted.topic, wanted.group, pulled.count, len(pulled.records))
        return pulled

    def pull_at_once(self, wanted: Wanted) -> PullAnswer | None:
        """What a queue has now; None where that cannot be said without waiting. Raises as `Puller.pull`."""
        try:
            pulled = self.puller.pull(wanted)
        except QueueInDoubt:
            return None
        if pulled.status is PullStatus.FOUND:
            self.traffic.pulled(wanted.topic, wanted.group, pulled.count, len(pulled.records))
        return pulled

    def advice(self, pulled: PullAnswer) -> int:
        """Id of the broker that a consumer with this answer should pull from next."""
        return self.puller.advice(pulled)

    def view(self, message_id: str) -> bytes:
        """The record that an offset id names. Raises as `Finder.view`."""
        return self.finder.view(message_id)

    def by_key(self, topic: str, key: str, begin: int, end: int, most: int, *, unique: bool) -> list[bytes]:
        """Records of a topic with a key; see `Finder.by_key`."""
        return self.finder.by_key(topic, key, begin, end, most, unique=unique)

    # -- queues -----------------------------------------------------------------------------------------------------

    def offsets_of(self, topic: str, queue_id: int, time_ms: int | None = None) -> QueueState:
        """Where a queue begins and ends; see `Catalog.offsets_of`."""
        return self.catalog.offsets_of(topic, queue_id, time_ms)

    async def offsets(self, topic: str, time_ms: int | None = None) -> list[QueueState]:
        """The same of all queues of a topic; see `Catalog.offsets`."""
        return await self.catalog.offsets(topic, time_ms)

    def list_topics(self, topic: str | None = None) -> AsyncIterator[TopicState]:
        """Topics with their queues; see `Catalog.topics`."""
        return self.catalog.topics(topic)

    def stop(self) -> None:
        """End every wait for messages, and every later one, with StoreStopping."""
        self.polls.stop()
