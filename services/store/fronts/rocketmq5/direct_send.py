"""DirectSendMessage: a SendMessage from the bytes of its request to those of its answer, by the compiled core.

What that does not take goes the way of every call: `sending`.
"""

import time
from collections.abc import Sequence
from functools import lru_cache

from tandemmq.common.grpc_transport import DirectCall, HeldCall
from tandemmq.common.topic_names import is_system_topic
from tandemmq.rocketmq5.v2 import calls_pb2
from tandemmq.rocketmq5.v2 import resources_pb2 as pb
from tandemmq.store.broker.acknowledgement import Acknowledgement
from tandemmq.store.broker.group_transfer import PutStatus
from tandemmq.store.broker.topics import TopicConfig
from tandemmq.store.fronts.held_answer import AnswerWhenSafe, SendCore, SendTimes
from tandemmq.store.fronts.native.requests import peer_host
from tandemmq.store.fronts.rocketmq5.caller import MOST_CLIENT_ID
from tandemmq.store.fronts.rocketmq5.message_types import accepted
from tandemmq.store.fronts.rocketmq5.sending import STATUSES

PATH = "/apache.rocketmq.v2.MessagingService/SendMessage"


class DirectSendMessage:
    """See `grpc_transport.Direct`."""

    def __init__(self, core: SendCore, acknowledgement: Acknowledgement, times: SendTimes) -> None:
        self.core = core
        self.acknowledgement = acknowledgement
        self.when_safe = AnswerWhenSafe("SendMessage", acknowledgement, times, _less_safe)

    def __call__(self, message: bytes, call: DirectCall) -> bytes | HeldCall | None:
        """The answer to a request; HELD: when disk and replicas have answered; None: it is not answered here."""
        begun, core = time.perf_counter(), self.core
        if self.acknowledgement.refuses or not self.accepts(call):
            return None
        answer = core.answer(message, peer_host(call.peer()).packed)
        if answer is None:
            return None
        return self.when_safe(answer, core.end_offset, call, begun, wait=core.waits)

    @staticmethod
    def accepts(call: DirectCall) -> bool:
        """See CoreSends."""
        return _is_named(call.invocation_metadata())

    def otherwise(self, _message: bytes, _call: DirectCall) -> None:
        """See CoreSends."""
        return


def takes_normal(config: TopicConfig) -> bool:
    """Whether clients may send messages of type NORMAL to a topic. To the broker's own they may not, see `names`."""
    return pb.NORMAL in accepted(config) and not is_system_topic(config.name)


def _is_named(metadata: Sequence[tuple[str, str | bytes]]) -> bool:
    """Whether a caller has said its client id, and no namespace."""
    client_id = ""
    for key, value in metadata:
        if key == "x-mq-client-id":
            client_id = value if isinstance(value, str) else ""
        elif key == "x-mq-namespace" and value:
            return False
    return _is_client_id(client_id)


@lru_cache(maxsize=1024)
def _is_client_id(text: str) -> bool:
    return 0 < len(text.strip()) <= MOST_CLIENT_ID


def _less_safe(answer: bytes, status: PutStatus) -> tuple[bytes, str]:
    response = calls_pb2.SendMessageResponse.FromString(answer)
    told = STATUSES[status]
    response.status.CopyFrom(told)
    response.entries[0].status.CopyFrom(told)
    return response.SerializeToString(), pb.Code.Name(told.code)
