"""The next queue offset of every queue (RocketMQ: ``topicQueueTable``, ``QueueOffsetOperator``).

Not persisted: recovery fills it from the consume queues and from the records after the checkpoint. A queue whose
number is not certain (its consume queue was lost and is being rebuilt) refuses appends rather than hand out an
offset twice.
"""

from tandemmq.store.log.errors import QueueNotReady

QueueKey = tuple[str, int]


class NextOffsets(dict[QueueKey, int]):
    """Map of ``(topic, queue id)`` to the offset that the queue's next message gets."""

    def __init__(self) -> None:
        """Begin with no queues, all others known to be new."""
        super().__init__()
        self.all_known = True
        self.uncertain: set[QueueKey] = set()

    def first(self, key: QueueKey) -> int:
        """Begin a queue that is not in the map.

        Raises:
            QueueNotReady: the queue may have messages that are not counted yet.
        """
        if not self.all_known or key in self.uncertain:
            raise QueueNotReady(
                f"Queue {key[1]} of topic {key[0]} is being rebuilt; its next offset is not known yet.",
                remedy="Try again in a moment, or send to another queue.",
            )
        self[key] = 0
        return 0

    def raise_to(self, key: QueueKey, offset: int) -> None:
        """Make sure that the next offset of ``key`` is at least ``offset``; the queue is certain from now on."""
        self.uncertain.discard(key)
        if offset > self.get(key, -1):
            self[key] = offset

    def doubt(self, key: QueueKey) -> None:
        """Mark a queue as uncertain until `raise_to` names its offset or `settle` ends all doubt."""
        self.pop(key, None)
        self.uncertain.add(key)

    def settle(self) -> None:
        """End all doubt: what is not in the map has no messages."""
        self.all_known = True
        self.uncertain.clear()
