"""What an operator asks of one client: where its threads are, and whether it can consume a message.

A question is a command with a nonce of its own, put on the client's way by its peer. The answer comes by whichever
connection the client chooses, and names the nonce. Only clients that know such commands are asked.
"""

import asyncio
import secrets
from collections.abc import Callable
from typing import NamedTuple

from tandemmq.common.timers import Timers, time_limit
from tandemmq.store.delivery.errors import MemberCannotAnswer, MemberSilent

ANSWER_SECONDS = 10.0
MOST_TEXT = 256 << 10
"""Characters of an answer; the rest is cut off."""


class ShowThreads(NamedTuple):
    """Say where your threads are."""

    nonce: str


class TryMessage(NamedTuple):
    """Consume one message more, and say what came of it."""

    nonce: str
    topic: str
    """As the client knows it."""
    record: bytes
    """The message as it lies in the log."""


MemberQuestion = ShowThreads | TryMessage


class MemberAnswer(NamedTuple):
    """What a client says."""

    code: str
    """The name of a status code of the client's protocol; OK where all went well."""
    text: str = ""


class MemberQuestions:
    """Questions that were asked and are not answered yet."""

    def __init__(self, timers: Timers) -> None:
        self._timers = timers
        self._open: dict[str, asyncio.Future[MemberAnswer]] = {}

    async def ask(
        self, put: Callable[[MemberQuestion], bool], make: Callable[[str], MemberQuestion], seconds: float
    ) -> MemberAnswer:
        """Ask. `put` puts a question on its way, `make` makes it of its nonce.

        Raises MemberCannotAnswer, MemberSilent.
        """
        nonce = secrets.token_hex(16)
        answered: asyncio.Future[MemberAnswer] = asyncio.get_running_loop().create_future()
        self._open[nonce] = answered
        try:
            if not put(make(nonce)):
                raise MemberCannotAnswer(
                    "The client has no stream on which it could be asked, or its protocol has no such question.",
                    remedy="Clients of RocketMQ 5 can be asked while their telemetry stream is open.",
                )
            async with time_limit(self._timers, seconds):
                return await answered
        except TimeoutError:
            raise MemberSilent(
                f"The client did not answer within {seconds:g} s.", remedy="Some clients ignore this question."
            ) from None
        finally:
            del self._open[nonce]

    def answered(self, nonce: str, answer: MemberAnswer) -> None:
        """A client has answered; nothing where nobody waits for that."""
        waiting = self._open.get(nonce)
        if waiting is not None and not waiting.done():
            waiting.set_result(answer._replace(text=answer.text[:MOST_TEXT]))
