"""Who may call what of the store, when there is an `accessFile`.

The calls of the internal port are the node's own: they need INTERNAL, also on loopback, where other programs of the
same machine could call too.
"""

from collections.abc import Iterator

from tandemmq.common.access.needs import ALL, Action, Need, group, publish, subscribe
from tandemmq.common.access.rules import Rule, Rules, ability, about
from tandemmq.delivery.v1 import delivery_pb2
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

_Consuming = (
    delivery_pb2.ReceiveRequest
    | delivery_pb2.AcknowledgeRequest
    | delivery_pb2.ChangeInvisibleRequest
    | delivery_pb2.ForwardToDeadLettersRequest
)


def _consume(request: _Consuming) -> tuple[Need, Need]:
    return group(request.group), subscribe(request.topic)


def _receive_stream(request: delivery_pb2.ReceiveStreamRequest) -> tuple[Need, ...]:
    return _consume(request.subscribe) if request.HasField("subscribe") else ()


def _send_back(request: delivery_pb2.SendBackRequest) -> tuple[Need, Need]:
    """A place in the log says no topic, and the copy can be read by the group."""
    return group(request.group), subscribe(ALL)


def _commit_offsets(request: delivery_pb2.CommitOffsetsRequest) -> Iterator[Need]:
    yield group(request.group)
    yield from map(subscribe, {commit.topic for commit in request.commits})


def _of_sender(request: delivery_pb2.EndTransactionRequest | delivery_pb2.RecallRequest) -> tuple[Need]:
    return (publish(request.topic),)


def _heartbeat(request: delivery_pb2.HeartbeatRequest) -> Iterator[Need]:
    """A group of producers too: who is in it is shown the half messages that it is asked about."""
    for membership in request.memberships:
        yield group(membership.group)
        yield from map(subscribe, membership.subscriptions)


def _leave(request: delivery_pb2.LeaveRequest) -> Iterator[Need]:
    return map(group, request.groups)


DELIVERY_RULES: Rules = {
    "Receive": about(Action.GROUP, _consume),
    "ReceiveStream": about(Action.GROUP, _receive_stream),
    "Acknowledge": about(Action.GROUP, _consume),
    "ChangeInvisible": about(Action.GROUP, _consume),
    "ForwardToDeadLetters": about(Action.GROUP, _consume),
    "SendBack": about(Action.GROUP, _send_back),
    "CommitOffsets": about(Action.GROUP, _commit_offsets),
    "EndTransaction": about(Action.PUBLISH, _of_sender),
    "Recall": about(Action.PUBLISH, _of_sender),
    "Heartbeat": about(Action.GROUP, _heartbeat),
    "Leave": about(Action.GROUP, _leave),
    "Attend": about(Action.GROUP, _heartbeat),
}
"""`tandemmq.delivery.v1.Delivery`."""

OPERATIONS_RULES: Rules = {
    "ViewGroups": ability(Action.VIEW),
    "ViewMessages": ability(Action.VIEW),
    "ViewWaiting": ability(Action.VIEW),
    "CreateTopic": ability(Action.MANAGE),
    "CreateGroup": ability(Action.MANAGE),
    "ShowThreads": ability(Action.VIEW),
    "TryMessage": ability(Action.MANAGE),
}
"""`tandemmq.delivery.v1.Operations`."""

REPLICA_LOG_RULES: Rules = {
    name: ability(Action.INTERNAL) for name in ("Link", "Receive", "GetRole", "Promote", "Fence", "Demote", "Remember")
}
"""`tandemmq.store.v1.ReplicaLog`."""

BROKER_RULES: Rules = {"Link": ability(Action.INTERNAL)}
"""`tandemmq.broker.v1.Broker`: gateways. Each question is looked at for the user whom the gateway names."""

LOG_REPAIR_RULES: Rules = {name: ability(Action.INTERNAL) for name in ("GetDamage", "Examine", "Repair")}
"""`tandemmq.store.v1.LogRepair`."""

DERIVED_FILES_RULES: Rules = {"Adopt": ability(Action.OPERATE, Action.INTERNAL)}
"""`tandemmq.store.v1.DerivedFiles`: a job of a person who operates the node."""
