"""Acks: an AckMessageRequest, and how it is answered; plain ones are read and answered by the compiled core."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from tandemmq.rocketmq5.v2 import calls_pb2
from tandemmq.rocketmq5.v2 import resources_pb2 as pb
from tandemmq.store.delivery.port import Outcome
from tandemmq.store.fronts.rocketmq5.statuses import OK, joined, status_of

AckCore = Callable[[bytes], tuple[bytes, bytes, list[str], bytes] | None]
"""The compiled twin: `tandemmq.store.fronts.rocketmq5.compiled.ack_message.read`."""


class EncodedAnswer(NamedTuple):
    """An answer that is in bytes already."""

    status: pb.Status
    data: bytes


class Acks:
    """What is acknowledged."""

    __slots__ = ("_data", "_done", "_request", "group", "handles", "topic")

    def __init__(self, data: bytes, core: AckCore | None = None) -> None:
        """From the bytes of a request. Raises protobuf's DecodeError."""
        self._data = data
        self._done = b""
        self._request: calls_pb2.AckMessageRequest | None = None
        plain = None if core is None else core(data)
        if plain is None:
            request = self._request = calls_pb2.AckMessageRequest.FromString(data)
            self.group, self.topic = request.group, request.topic
            self.handles = [one.receipt_handle for one in request.entries]
        else:
            group, topic, self.handles, self._done = plain
            self.group, self.topic = pb.Resource.FromString(group), pb.Resource.FromString(topic)

    def answer(self, outcomes: Sequence[Outcome]) -> calls_pb2.AckMessageResponse | EncodedAnswer:
        """One entry for each handle."""
        if self._done and all(one.error is None for one in outcomes):
            return EncodedAnswer(OK, self._done)
        request = self._request or calls_pb2.AckMessageRequest.FromString(self._data)
        entries = [
            calls_pb2.AckMessageResultEntry(
                message_id=entry.message_id,
                receipt_handle=entry.receipt_handle,
                status=OK if outcome.error is None else status_of(outcome.error),
            )
            for entry, outcome in zip(request.entries, outcomes, strict=True)
        ]
        return calls_pb2.AckMessageResponse(status=joined([one.status for one in entries]), entries=entries)

    def answered(self, outcomes: Sequence[Outcome]) -> tuple[bytes, str]:
        """See `acknowledgements_of_turn.GivenBack`."""
        answer = self.answer(outcomes)
        code = answer.status.code
        return encoded(answer), "SUCCESS" if code == pb.OK else pb.Code.Name(code)


def encoded(answer: calls_pb2.AckMessageResponse | EncodedAnswer) -> bytes:
    """The bytes of an answer."""
    return answer.data if isinstance(answer, EncodedAnswer) else answer.SerializeToString()
