"""Requests of delivery.proto as delivery wants them: defaults filled in, limits applied."""

from collections.abc import Sequence, Sized

from tandemmq.delivery.v1 import delivery_pb2
from tandemmq.store.broker.rules import check_not_negative
from tandemmq.store.delivery.errors import BadDelivery
from tandemmq.store.delivery.port import ANY, Ending, FilterKind, Subscription, Wish
from tandemmq.store.fronts.native.limits import PullLimits
from tandemmq.store.fronts.native.requests import MOST_WAIT_MS

DEFAULT_RECEIVED_MESSAGES = 32
DEFAULT_RECEIVED_BYTES = 4 << 20

MOST_HANDLES = 1024
"""Handles, changes or commits of one request."""

MOST_MEMBERSHIPS = 256
MOST_NAME = 255
MOST_ATTEMPT_ID = 128

ENDINGS = {
    delivery_pb2.UNKNOWN: Ending.UNKNOWN,
    delivery_pb2.COMMIT: Ending.COMMIT,
    delivery_pb2.ROLLBACK: Ending.ROLLBACK,
}


def wish(request: delivery_pb2.ReceiveRequest, limits: PullLimits) -> Wish:
    """What a receive asks for. Raises BadDelivery, BadRequest."""
    check_not_negative("max_messages", request.max_messages)
    check_not_negative("max_bytes", request.max_bytes)
    check_not_negative("invisible_ms", request.invisible_ms)
    if request.HasField("queue_id"):
        check_not_negative("queue_id", request.queue_id)
    if not 0 <= request.wait_ms <= MOST_WAIT_MS:
        raise BadDelivery(f"wait_ms is {request.wait_ms}: allowed is 0 to {MOST_WAIT_MS:,}.")
    if request.renew and not request.client_id:
        raise BadDelivery("renew is set and client_id is not: give the name that the heartbeats have.")
    _check_length("attempt_id", request.attempt_id, MOST_ATTEMPT_ID)
    _check_length("client_id", request.client_id, MOST_NAME)
    return Wish(
        group=request.group,
        topic=request.topic,
        queue=request.queue_id if request.HasField("queue_id") else ANY,
        subscription=subscription(request.filter),
        most=request.max_messages or DEFAULT_RECEIVED_MESSAGES,
        most_bytes=min(request.max_bytes or DEFAULT_RECEIVED_BYTES, max(limits.bytes, DEFAULT_RECEIVED_BYTES)),
        invisible_ms=request.invisible_ms,
        wait_ms=request.wait_ms,
        renew=request.renew,
        client_id=request.client_id,
        attempt_id=request.attempt_id,
    )


def subscription(given: delivery_pb2.Filter) -> Subscription:
    """A filter of the contract. Raises BadDelivery."""
    if given.kind not in (delivery_pb2.TAG, delivery_pb2.SQL92):
        raise BadDelivery(f"filter.kind is {given.kind}: allowed is TAG (0) or SQL92 (1).")
    sql = given.kind == delivery_pb2.SQL92 and given.expression  # an empty condition is none
    return Subscription(given.expression or "*", FilterKind.SQL if sql else FilterKind.TAG)


def handles(request: delivery_pb2.AcknowledgeRequest | delivery_pb2.ForwardToDeadLettersRequest) -> Sequence[str]:
    """The handles of a request. Raises BadDelivery."""
    check_count("handles", request.handles, MOST_HANDLES)
    return list(request.handles)


def ending(request: delivery_pb2.EndTransactionRequest) -> Ending:
    """How a transaction is to end. Raises BadDelivery."""
    found = ENDINGS.get(request.ending)
    if found is None:
        raise BadDelivery(f"ending is {request.ending}: allowed is UNKNOWN (0), COMMIT (1) or ROLLBACK (2).")
    return found


def check_count(name: str, given: Sized, most: int) -> None:
    """Raises BadDelivery."""
    if not 1 <= len(given) <= most:
        remedy = "Make several requests of it." if given else f"Name the {name} that are meant."
        raise BadDelivery(f"The request has {len(given):,} {name}: allowed is 1 to {most:,}.", remedy=remedy)


def check_heartbeat(request: delivery_pb2.HeartbeatRequest) -> None:
    """Raises BadDelivery."""
    if not request.client_id:
        raise BadDelivery("client_id is empty: give a name that no other client has.")
    _check_length("client_id", request.client_id, MOST_NAME)
    _check_length("language", request.language, MOST_NAME)
    _check_length("version", request.version, MOST_NAME)
    check_count("memberships", request.memberships, MOST_MEMBERSHIPS)
    for membership in request.memberships:
        if not membership.group:
            raise BadDelivery("A membership names no group.")
        _check_length("group", membership.group, MOST_NAME)
        for given in membership.subscriptions.values():
            subscription(given)


def _check_length(name: str, given: str, most: int) -> None:
    if len(given) > most:
        raise BadDelivery(f"{name} has {len(given):,} characters: allowed are {most}.")
