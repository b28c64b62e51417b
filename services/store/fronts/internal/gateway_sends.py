"""GatewaySends: the plain messages of a gateway's questions, stored by the compiled core and answered together.

What that does not take is left as it came, for `gateway_link`.
"""

from collections.abc import Callable
from functools import partial
from typing import Protocol

from tandemmq.broker.v1 import broker_pb2
from tandemmq.store.broker.acknowledgement import Acknowledgement
from tandemmq.store.broker.group_transfer import PutStatus


class LinkCore(Protocol):
    """The compiled twin: `tandemmq.store.fronts.internal.compiled.link_sends.CompiledLinkSends`."""

    @property
    def end_offset(self) -> int:
        """Log offset after the message that was stored last."""
        ...

    @property
    def taken(self) -> int:
        """Messages that it took so far."""
        ...

    def answer(self, request: bytes, /) -> tuple[bytes, bytes]:
        """Store the plain messages of a LinkRequest: a LinkResponse with PUT_OK for each, and a request with the rest.

        Both may be empty.
        """
        ...


class GatewaySends:
    """See the module."""

    def __init__(self, core: LinkCore, acknowledgement: Acknowledgement) -> None:
        self._core = core
        self._acknowledgement = acknowledgement

    def take(self, request: bytes, answer: Callable[[bytes], None]) -> bytes:
        """Store what is plain of a LinkRequest, and give what is left of it.

        `answer` gets a LinkResponse when disk and replicas have the messages, or will not: now, or later.
        """
        acknowledgement = self._acknowledgement
        if acknowledgement.refuses:
            return request
        answers, rest = self._core.answer(request)
        if not answers:
            return rest
        if acknowledgement.waits:
            acknowledgement.when_safe(self._core.end_offset, partial(_tell, answers, answer), wait=True)
        else:
            answer(answers)
        return rest


def _tell(answers: bytes, answer: Callable[[bytes], None], status: PutStatus) -> None:
    answer(answers if status is PutStatus.PUT_OK else _less_safe(answers, status))


def _less_safe(answers: bytes, status: PutStatus) -> bytes:
    """Answers with another status."""
    response = broker_pb2.LinkResponse.FromString(answers)
    for one in response.answers:
        one.stored.status = status.name
    return response.SerializeToString()
