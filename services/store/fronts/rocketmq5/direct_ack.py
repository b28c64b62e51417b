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
from tandemmq.store.fronts.acknowledgements_of_turn import AcknowledgementsOfTurn, HandlesOf
from tandemmq.store.fronts.rocketmq5.acks import AckCore, Acks
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
        self, receipts: Receipts, acknowledgements: AcknowledgementsOfTurn, core: AckCore | None = None
    ) -> None:
        """`core`, if there is one, reads plain requests."""
        self._receipts = receipts
        self._acknowledgements = acknowledgements
        self._core = core

    def __call__(self, message: bytes, call: DirectCall) -> bytes | HeldCall | None:
        """See `AcknowledgementsOfTurn`."""
        begun = time.perf_counter()
        try:
            acks = Acks(message, self._core)
            caller = caller_of(call).named()
            group, topic = group_name(acks.group, caller.namespace), topic_name(acks.topic, caller.namespace)
            asked = HandlesOf(group, topic, self._receipts.in_time(acks, caller))
            return self._acknowledgements(asked, acks, message, call, begun)
        except (TandemError, CallFailure, DecodeError):
            return None
