"""DirectSend: a Send that has nothing to wait for, from the bytes of its request to those of its answer.

No coroutine is made, and no task could be needed. Whatever is not the plain case is not answered here, and nothing of
it is stored: a send that must wait for disk or replicas, one to a topic that must be made first, one that is refused,
one with hooks around it. `StoreServicer.Send` does those, and says what is wrong.
"""

import time

from google.protobuf.message import DecodeError

from tandemmq.common.errors import TandemError
from tandemmq.store.broker.broker import Broker
from tandemmq.store.fronts.native.answers import send_response
from tandemmq.store.fronts.native.requests import new_message, peer_host
from tandemmq.store.metrics import StoreMetrics
from tandemmq.store.v1 import store_pb2

PATH = "/tandemmq.store.v1.Store/Send"


class DirectSend:
    """See `grpc_transport.Direct`."""

    def __init__(self, broker: Broker, metrics: StoreMetrics) -> None:
        self._broker = broker
        self._acknowledgement = broker.acknowledgement
        self._metrics = metrics

    def __call__(self, message: bytes, peer: str) -> bytes | None:
        """The answer to a request, or None: it is not answered here."""
        if self._acknowledgement.waits:
            return None
        begun = time.perf_counter()
        try:
            request = store_pb2.SendRequest.FromString(message)
            new = new_message(request.message, peer_host(peer))
            receipt = self._broker.send_at_once(new, wait=not request.no_wait)
        except (TandemError, DecodeError):
            return None
        if receipt is None:
            return None
        answer = send_response(receipt).SerializeToString()
        self._metrics.called("Send", "SUCCESS", time.perf_counter() - begun)
        return answer
