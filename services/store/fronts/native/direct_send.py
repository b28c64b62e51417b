"""DirectSend: a Send from the bytes of its request to those of its answer, without a coroutine, task or future.

Whatever is not the plain case is not answered here, and nothing of it is stored: a message to a topic that must be made
first, one that is refused, one with hooks around it. `StoreServicer.Send` does those, and says what is wrong.
"""

import time

from google.protobuf.message import DecodeError

from tandemmq.common.errors import TandemError
from tandemmq.common.grpc_transport import DirectCall, HeldCall
from tandemmq.store.broker.acknowledgement import Acknowledgement
from tandemmq.store.broker.broker import Broker
from tandemmq.store.broker.group_transfer import PutStatus
from tandemmq.store.broker.send import new_tuple
from tandemmq.store.broker.submission import Receipt
from tandemmq.store.fronts.held_answer import AnswerWhenSafe, SendCore
from tandemmq.store.fronts.native.answers import send_response
from tandemmq.store.fronts.native.requests import new_message, peer_host
from tandemmq.store.metrics import StoreMetrics
from tandemmq.store.v1 import store_pb2

PATH = "/tandemmq.store.v1.Store/Send"
BATCH_PATH = "/tandemmq.store.v1.Store/SendBatch"


class DirectSend:
    """See `grpc_transport.Direct`."""

    accepts = None

    def __init__(self, broker: Broker, metrics: StoreMetrics, core: SendCore | None = None) -> None:
        """`core`, if there is one, is asked first."""
        self._broker = broker
        self.acknowledgement = broker.acknowledgement
        self.when_safe = AnswerWhenSafe("Send", broker.acknowledgement, metrics, _less_safe)
        self.core = core

    def __call__(self, message: bytes, call: DirectCall) -> bytes | HeldCall | None:
        """The answer to a request; HELD: when disk and replicas have answered; None: it is not answered here."""
        begun = time.perf_counter()
        core = self.core
        if core is not None and not self.acknowledgement.refuses:
            answer = core.answer(message, peer_host(call.peer()).packed)
            if answer is not None:
                return self.when_safe(answer, core.end_offset, call, begun, wait=core.waits)
        return self.otherwise(message, call)

    def otherwise(self, message: bytes, call: DirectCall) -> bytes | HeldCall | None:
        """The same by Python alone."""
        begun = time.perf_counter()
        try:
            request = store_pb2.SendRequest.FromString(message)
            wait = not request.no_wait
            stored = self._broker.store_at_once(new_message(request.message, peer_host(call.peer())), wait=wait)
        except (TandemError, DecodeError):
            return None
        if stored is None:
            return None
        ready, place = stored
        answer = send_response(new_tuple(Receipt, (ready, place, PutStatus.PUT_OK))).SerializeToString()
        return self.when_safe(answer, place.end_offset, call, begun, wait=ready.wait and wait)


class DirectSendBatch:
    """See `grpc_transport.Direct`. Where the core does not take a request, nothing else is tried here."""

    accepts = None

    def __init__(self, core: SendCore, acknowledgement: Acknowledgement, metrics: StoreMetrics) -> None:
        self.acknowledgement = acknowledgement
        self.when_safe = AnswerWhenSafe("SendBatch", acknowledgement, metrics, less_safe_batch)
        self.core = core

    def __call__(self, message: bytes, call: DirectCall) -> bytes | HeldCall | None:
        """See DirectSend."""
        begun = time.perf_counter()
        if self.acknowledgement.refuses:
            return None
        answer = self.core.answer(message, peer_host(call.peer()).packed)
        if answer is None:
            return None
        return self.when_safe(answer, self.core.end_offset, call, begun, wait=self.core.waits)

    def otherwise(self, _message: bytes, _call: DirectCall) -> None:
        """See CoreSends."""
        return


def _less_safe(answer: bytes, status: PutStatus) -> tuple[bytes, str]:
    response = store_pb2.SendResponse.FromString(answer)
    response.receipt.status = status  # type: ignore[assignment]  # the same numbers
    return response.SerializeToString(), "SUCCESS"


def less_safe_batch(answer: bytes, status: PutStatus) -> tuple[bytes, str]:
    """See `held_answer.LessSafe`; of a SendBatchResponse."""
    response = store_pb2.SendBatchResponse.FromString(answer)
    for receipt in response.batch_receipts:
        receipt.status = status  # type: ignore[assignment]  # the same numbers
    return response.SerializeToString(), "SUCCESS"
