"""Locks of queues, which ordered consumers ask for before they pull."""

from typing import Any

from tandemmq.common.access.needs import group as use_group
from tandemmq.common.wire.remoting.codes import RequestCode, ResponseCode
from tandemmq.common.wire.remoting.command import Command
from tandemmq.store.delivery.members.queue_locks import QueueLocks
from tandemmq.store.fronts.remoting import json_bodies
from tandemmq.store.fronts.remoting.call import Handler, RemotingCall
from tandemmq.store.fronts.remoting.statuses import RemotingRefusal

MOST_QUEUES = 10_000
"""Of one request."""


class QueueLocking:
    """Answers LOCK_BATCH_MQ and UNLOCK_BATCH_MQ."""

    def __init__(self, locks: QueueLocks, broker_name: str) -> None:
        self._locks = locks
        self._broker_name = broker_name

    def handlers(self) -> dict[int, Handler]:
        """By request code."""
        return {RequestCode.LOCK_BATCH_MQ: self.lock, RequestCode.UNLOCK_BATCH_MQ: self.unlock}

    def lock(self, call: RemotingCall) -> Command:
        """LOCK_BATCH_MQ: gives the queues that are the client's from now on."""
        group, client_id, queues = self._asked(call)
        granted = set(self._locks.lock(group, client_id, [(topic, queue) for topic, queue, _ in queues]))
        own = [one for topic, queue, one in queues if (topic, queue) in granted]
        return call.ok(None, json_bodies.write({"lockOKMQSet": own}))

    def unlock(self, call: RemotingCall) -> Command:
        """UNLOCK_BATCH_MQ."""
        group, client_id, queues = self._asked(call)
        self._locks.unlock(group, client_id, [(topic, queue) for topic, queue, _ in queues])
        return call.ok()

    def _asked(self, call: RemotingCall) -> tuple[str, str, list[tuple[str, int, dict[str, Any]]]]:
        said = json_bodies.read(call.body)
        group, client_id = json_bodies.text(said, "consumerGroup"), json_bodies.text(said, "clientId")
        call.demand(use_group(group))
        queues = json_bodies.objects(said, "mqSet")
        if len(queues) > MOST_QUEUES:
            raise RemotingRefusal(ResponseCode.SYSTEM_ERROR, f"{len(queues):,} queues are more than {MOST_QUEUES:,}.")
        found = [(json_bodies.text(one, "topic"), json_bodies.number_or(one, "queueId", 0)) for one in queues]
        return group, client_id, [(topic, queue, self._queue(topic, queue)) for topic, queue in found]

    def _queue(self, topic: str, queue: int) -> dict[str, Any]:
        return {"brokerName": self._broker_name, "queueId": queue, "topic": topic}
