"""SignedDirect: the short way of a method that asks for a signature.

It is for callers who are recognized, and who may make the call. All others are left to the handler, which says what is
wrong (`answered.py`).
"""

from collections.abc import Callable, Iterable

from google.protobuf.message import DecodeError

from tandemmq.common.access.needs import Need, group, publish, subscribe
from tandemmq.common.errors import TandemError
from tandemmq.common.grpc_transport import CallFailure, Direct, DirectCall, HeldCall
from tandemmq.common.serving.guard import own
from tandemmq.rocketmq5.v2 import calls_pb2
from tandemmq.rocketmq5.v2 import resources_pb2 as pb
from tandemmq.store.fronts.rocketmq5.caller import Caller, caller_of
from tandemmq.store.fronts.rocketmq5.identity import SigningIdentity
from tandemmq.store.fronts.rocketmq5.names import group_name, topic_name

Needs = Callable[[bytes, Caller], Iterable[Need]]
"""What a request needs, given its bytes. Raises DecodeError, ProtocolRefusal."""


class SignedDirect:
    """See `grpc_transport.Direct`."""

    def __init__(self, identity: SigningIdentity, needs: Needs, direct: Direct) -> None:
        self._identity = identity
        self._needs = needs
        self._direct = direct

    def __call__(self, message: bytes, call: DirectCall) -> bytes | HeldCall | None:
        """What the short way says; None without asking it where the caller is not recognized, or may not."""
        try:
            caller = caller_of(call)
            principal = self._identity.recognized(caller)
            if principal is None or not all(map(principal.may, self._needs(message, caller))):
                return None
        except (TandemError, CallFailure, DecodeError):
            return None
        own(call, principal)
        return self._direct(message, call)


def signed(identity: SigningIdentity, needs: Needs, direct: Direct) -> Direct:
    """The short way, where callers must say who they are behind their signatures."""
    return SignedDirect(identity, needs, direct) if identity.asks else direct


def of_send(message: bytes, caller: Caller) -> Iterable[Need]:
    """SendMessage: to send to its topics."""
    request = calls_pb2.SendMessageRequest.FromString(message)
    return [publish(topic_name(one.topic, caller.namespace)) for one in request.messages]


def of_receive(message: bytes, caller: Caller) -> Iterable[Need]:
    """ReceiveMessage: to use its group and to read its topic."""
    request = calls_pb2.ReceiveMessageRequest.FromString(message)
    return _consuming(request.group, request.message_queue.topic, caller)


def of_acknowledge(message: bytes, caller: Caller) -> Iterable[Need]:
    """AckMessage: the same."""
    request = calls_pb2.AckMessageRequest.FromString(message)
    return _consuming(request.group, request.topic, caller)


def _consuming(consumers: pb.Resource, topic: pb.Resource, caller: Caller) -> tuple[Need, Need]:
    names = group_name(consumers, caller.namespace), topic_name(topic, caller.namespace)
    return group(names[0]), subscribe(names[1])
