"""Locks of queues: an ordered classic consumer gets messages of a queue only while it has locked it.

A lock belongs to a client of a group, whatever its connection, and ends by itself (RocketMQ:
``RebalanceLockManager``). It lives in memory: after a restart all locks are free.
"""

from collections.abc import Callable, Iterable

LEASE_SECONDS = 60.0
"""A lock that was not renewed for so long is free. Clients renew every 20 s, and count on it for 30 s."""

QueueName = tuple[str, int]
"""Topic and queue."""


class QueueLocks:
    """All locks of all groups."""

    def __init__(self, now: Callable[[], float], seconds: float = LEASE_SECONDS) -> None:
        """`now`: seconds, by a clock that never goes back."""
        self._now = now
        self._seconds = seconds
        self._locks: dict[str, dict[QueueName, tuple[str, float]]] = {}

    def lock(self, group: str, client_id: str, queues: Iterable[QueueName]) -> list[QueueName]:
        """Lock those that are free, or the client's already; gives those that are its own now."""
        now = self._now()
        held = self._locks.setdefault(group, {})
        granted = [queue for queue in queues if self._free_for(held.get(queue), client_id, now)]
        for queue in granted:
            held[queue] = client_id, now + self._seconds
        self._drop_ended(group, held, now)
        return granted

    def unlock(self, group: str, client_id: str, queues: Iterable[QueueName]) -> None:
        """Give back those that are the client's."""
        held = self._locks.get(group, {})
        for queue in queues:
            if held.get(queue, ("", 0))[0] == client_id:
                del held[queue]
        self._drop_ended(group, held, self._now())

    def holder(self, group: str, queue: QueueName) -> str | None:
        """The client that has locked a queue."""
        client_id, until = self._locks.get(group, {}).get(queue, ("", 0.0))
        return client_id if client_id and until > self._now() else None

    def any(self, group: str) -> bool:
        """Whether any queue is locked by the group."""
        now = self._now()
        return any(until > now for _, until in self._locks.get(group, {}).values())

    @staticmethod
    def _free_for(lock: tuple[str, float] | None, client_id: str, now: float) -> bool:
        return lock is None or lock[0] == client_id or lock[1] <= now

    def _drop_ended(self, group: str, held: dict[QueueName, tuple[str, float]], now: float) -> None:
        for queue in [queue for queue, (_, until) in held.items() if until <= now]:
            del held[queue]
        if not held:
            self._locks.pop(group, None)
