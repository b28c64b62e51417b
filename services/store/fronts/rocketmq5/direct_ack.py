"""DirectAckMessage: an AckMessage from the bytes of its request to those of its answer, without a coroutine or task.

What is refused as a whole, or cannot be said at once, goes the way of every call: `receipts`.
"""

import time

from google.protobuf.message import DecodeError

from tandemmq.common.errors import TandemError
from tandemmq.common.grpc_transport import CallFailure, DirectCall, HeldCall
from tandemmq.rocketmq5.v2 import calls_pb2
from tandemmq.rocketmq5.v2 import resources_pb2 as pb
from tandemmq.store.delivery.errors import NotSafe
from tandemmq.store.delivery.port import AtOncePort
from tandemmq.store.fronts.held_acknowledgements import HeldAcknowledgements
from tandemmq.store.fronts.held_answer import SendTimes
from tandemmq.store.fronts.rocketmq5.acks import AckCore, Acks, EncodedAnswer
from tandemmq.store.fronts.rocketmq5.caller import caller_of
from tandemmq.store.fronts.rocketmq5.names import group_name, topic_name
from tandemmq.store.fronts.rocketmq5.receipts import Receipts
from tandemmq.store.fronts.rocketmq5.statuses import status_of

PATH = "/apache.rocketmq.v2.MessagingService/AckMessage"


def refuse(call: DirectCall, error: NotSafe) -> str:
    """See `held_acknowledgements.Refuse`."""
    status = status_of(error)
    call.answer_later(calls_pb2.AckMessageResponse(status=status).SerializeToString())
    return pb.Code.Name(status.code)


class DirectAckMessage:
    """See `grpc_transport.Direct`."""

    def __init__(
        self,
        receipts: Receipts,
        delivery: AtOncePort,
        held: HeldAcknowledgements,
        times: SendTimes,
        core: AckCore | None = None,
    ) -> None:
        """`core`, if there is one, reads plain requests."""
        self._receipts = receipts
        self._delivery = delivery
        self._core = core
        self._times = times
        self._held = held

    def __call__(self, message: bytes, call: DirectCall) -> bytes | HeldCall | None:
        """HELD: what is dealt with is noted; None: nothing is, the handler answers."""
        begun = time.perf_counter()
        try:
            acks = Acks(message, self._core)
            caller = caller_of(call).named()
            group, topic = group_name(acks.group, caller.namespace), topic_name(acks.topic, caller.namespace)
            in_time = self._receipts.in_time(acks, caller)
            outcomes = self._delivery.acknowledge_at_once(group, topic, acks.handles, in_time=in_time)
        except (TandemError, CallFailure, DecodeError):
            return None
        if outcomes is None:
            return None
        told = acks.answer(outcomes)
        answer = told.data if isinstance(told, EncodedAnswer) else told.SerializeToString()
        outcome = "SUCCESS" if told.status.code == pb.OK else pb.Code.Name(told.status.code)
        if any(one.error is None for one in outcomes):
            return self._held.hold(call, message, answer, begun, outcome)
        self._times.called("AckMessage", outcome, time.perf_counter() - begun)
        return answer  # nothing has changed: there is nothing to wait for
