"""A consumer group: a reader that keeps its own offsets, and everything it has read."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tandemmq.client import Record, StoreClient

_CHUNK = 2000
_CHUNK_BYTES = 4 << 20

QueueKey = tuple[str, int]


class ConsumerGroup:
    """Reads topics from where they end when it is made. It survives the store: offsets are its own."""

    def __init__(self, name: str, topics: list[str], tags: str = "") -> None:
        """`tags`: an expression as in `tandem pull --tag`."""
        self.name, self.topics, self.tags = name, topics, tags
        self.offsets: dict[QueueKey, int] = {}
        self.records: list[Record] = []

    def copy(self, name: str) -> "ConsumerGroup":
        """Another group that stands where this one does, and has read nothing."""
        other = ConsumerGroup(name, self.topics, self.tags)
        other.offsets = dict(self.offsets)
        return other

    def begin_at_the_end(self, client: "StoreClient") -> None:
        """Skip what an earlier demo left; topics that do not exist yet are read from their beginning."""
        for topic in client.queues().topics:
            if topic.topic in self.topics:
                for queue in topic.queues:
                    self.offsets[topic.topic, queue.queue_id] = queue.max_offset

    def catch_up(self, client: "StoreClient") -> int:
        """Read everything new; gives the number of messages."""
        before = len(self.records)
        for topic in client.queues().topics:
            for queue in topic.queues if topic.topic in self.topics else ():
                self._read(client, (topic.topic, queue.queue_id), queue.max_offset)
        return len(self.records) - before

    def _read(self, client: "StoreClient", queue: QueueKey, end: int) -> None:
        offset = self.offsets.get(queue, 0)
        while offset < end:
            pulled = client.pull(
                *queue, offset, max_messages=_CHUNK, max_bytes=_CHUNK_BYTES, tags=self.tags, group=self.name
            )
            self.records += pulled.records
            if pulled.next_offset <= offset:
                break
            offset = pulled.next_offset
        self.offsets[queue] = offset
