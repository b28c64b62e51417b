"""Who may call what of the store, when there is an `accessFile`.

The calls of the internal port are the node's own: they need INTERNAL, also on loopback, where other programs of the
same machine could call too.
"""

from collections.abc import Iterator

from tandemmq.common.access.needs import ALL, Action, Need, publish, subscribe
from tandemmq.common.access.rules import Rule, Rules, ability, about
from tandemmq.store.v1 import store_pb2


def _send(request: store_pb2.SendRequest) -> tuple[Need]:
    return (publish(request.message.topic),)


def _send_batch(request: store_pb2.SendBatchRequest) -> Iterator[Need]:
    """Each topic once, though a request may have thousands of messages."""
    topics = {message.topic for message in request.messages}
    topics.update(batch.topic for batch in request.batches)
    return map(publish, topics)


def _pull(request: store_pb2.PullRequest) -> tuple[Need]:
    """The group that it names is for the metrics only, and asks for nothing: committing does."""
    return (subscribe(request.topic),)


def _pull_stream(request: store_pb2.PullStreamRequest) -> tuple[Need, ...]:
    return _pull(request.subscribe) if request.HasField("subscribe") else ()


def _query(request: store_pb2.QueryMessageRequest) -> tuple[Need]:
    return (subscribe(request.topic),)


def _offsets(request: store_pb2.GetOffsetsRequest) -> tuple[Need]:
    return (subscribe(request.topic, Action.VIEW),)


def _list(request: store_pb2.ListQueuesRequest) -> tuple[Need]:
    """One topic is the concern of who reads it, all of them are not."""
    return (subscribe(request.topic, Action.VIEW) if request.topic else Need(Action.VIEW),)


RULES: Rules = {
    "Send": about(Action.PUBLISH, _send),
    "SendBatch": about(Action.PUBLISH, _send_batch),
    "SendStream": about(Action.PUBLISH, _send_batch),
    "Pull": about(Action.SUBSCRIBE, _pull),
    "PullStream": about(Action.SUBSCRIBE, _pull_stream),
    # An id says no topic. Looking first and refusing then would tell where in the log whose messages are.
    "ViewMessage": Rule((Need(Action.SUBSCRIBE, ALL),)),
    "QueryMessage": about(Action.SUBSCRIBE, _query),
    "GetOffsets": about(Action.SUBSCRIBE, _offsets, Action.VIEW),
    "ListQueues": about(Action.SUBSCRIBE, _list, Action.VIEW),
    "GetLog": ability(Action.VIEW),
}
"""`tandemmq.store.v1.Store`."""

REPLICA_LOG_RULES: Rules = {
    name: ability(Action.INTERNAL) for name in ("Link", "Receive", "GetRole", "Promote", "Fence", "Demote", "Remember")
}
"""`tandemmq.store.v1.ReplicaLog`."""

LOG_REPAIR_RULES: Rules = {name: ability(Action.INTERNAL) for name in ("GetDamage", "Examine", "Repair")}
"""`tandemmq.store.v1.LogRepair`."""

DERIVED_FILES_RULES: Rules = {"Adopt": ability(Action.OPERATE, Action.INTERNAL)}
"""`tandemmq.store.v1.DerivedFiles`: a job of a person who operates the node."""
