"""BrokerLink: one stream to one store. Questions of a turn of the loop leave together; answers come in any order."""

import asyncio
import itertools
from collections import deque
from collections.abc import Callable
from typing import Any

import grpc

from tandemmq.broker.v1 import broker_pb2
from tandemmq.common.errors import TandemError
from tandemmq.common.grpc_transport import Duplex, duplex
from tandemmq.common.log_output import get_log
from tandemmq.common.timers import Timers, time_limit
from tandemmq.gateway.errors import BrokerAway, LinkLost
from tandemmq.gateway.questions import Answer, Question, refusal
from tandemmq.store.fronts.rocketmq5.passed_sends import HeldSends

log = get_log(__name__)

_PATH = "/tandemmq.broker.v1.Broker/Link"
_MOST_BYTES = 1 << 20
"""Of one message of the stream, unless a single question has more."""
MOST_UNSENT = 64 << 20
"""Bytes of questions that the store has not read; those who ask more wait."""

Heard = Callable[[Answer | None], None]
"""Hears the answer to a question; None: the link has ended before it came."""
Orphaned = Callable[[Answer], None]
"""Hears answers for which nobody waits any more, and what the store says unasked."""


class BrokerLink:
    """A link, from `begin` until `ended` is done. Whoever asks on one that has ended gets LinkLost."""

    def __init__(
        self, channel: grpc.aio.Channel, address: str, gateway: str, orphaned: Orphaned, timers: Timers
    ) -> None:
        """`gateway`: this gateway's name for itself."""
        self.address = address
        self.epoch = 0
        """Of the store's mastership."""
        self.ended: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        """Done when the link has ended, with the reason."""
        self.held: HeldSends | None = None
        """The calls whose messages the compiled core has passed on here, where it is used."""
        self._loop = asyncio.get_running_loop()
        self._channel = channel
        self._gateway = gateway
        self._timers = timers
        self._orphaned = orphaned
        self.next_number: Callable[[], int] = itertools.count(1).__next__
        """The number of another question."""
        self._waiting: dict[int, asyncio.Future[Answer]] = {}
        self._hearing: dict[int, Heard] = {}
        self._unsent: deque[bytes] = deque()
        """LinkRequests; one after the other they are one."""
        self._unsent_bytes = 0
        self._room: deque[asyncio.Future[None]] = deque()
        self._due = False
        self._call: Duplex[bytes, bytes] | None = None

    # -- life -------------------------------------------------------------------------------------------------------

    async def begin(self, seconds: float) -> broker_pb2.Welcome:
        """Dial, and introduce ourselves. Raises BrokerAway where nobody answers who may: no master, not the time."""
        link: Any = self._channel.stream_stream(_PATH)  # requests and answers stay bytes
        self._call = duplex(link())
        self._call.listen(self._hear, on_end=self._end, on_writable=self._flush)
        hello = Question(hello=broker_pb2.Hello(gateway=self._gateway))
        try:
            async with time_limit(self._timers, seconds):
                answer = await self.ask(hello)
        except TimeoutError:
            await self.close()
            raise BrokerAway(f"{self.address} does not answer.") from None
        except LinkLost:
            await self.close()
            raise BrokerAway(f"{self.address}: {self.ended.result()}") from None
        except asyncio.CancelledError:
            await self.close()
            raise
        self.epoch = answer.welcome.epoch
        return answer.welcome

    async def close(self) -> None:
        """End the link."""
        if self._call is not None:
            self._call.cancel()
        self._over("closed")
        await self._channel.close()

    def _end(self, code: grpc.StatusCode, details: str) -> None:
        self._over(f"{code.name}: {details}" if details else code.name)

    def _over(self, reason: str) -> None:
        if self.ended.done():
            return
        self.ended.set_result(reason)
        self._unsent.clear()
        waiting, self._waiting = self._waiting, {}
        everybody: list[asyncio.Future[Any]] = [*waiting.values(), *self._room]
        for one in everybody:
            if not one.done():
                one.set_exception(LinkLost(f"The link to {self.address} ended: {reason}."))
        self._room.clear()
        if self.held is not None:
            self.held.leave()
        hearing, self._hearing = self._hearing, {}
        for heard in hearing.values():
            self._tell(heard, None)

    # -- asking -----------------------------------------------------------------------------------------------------

    async def ask(self, question: Question) -> Answer:
        """Ask, and wait for the answer. Raises LinkLost, BrokerRefusal."""
        while self._unsent_bytes > MOST_UNSENT:
            room: asyncio.Future[None] = self._loop.create_future()
            self._room.append(room)
            await room
        number = self.post(question)
        try:
            answer = await self.answer(number)
        finally:
            self.forget(number)
        return answer

    def post(self, question: Question) -> int:
        """Ask; gives the number by which `answer` is to be awaited, and the question `forget`. Raises LinkLost."""
        if self.ended.done():
            raise LinkLost(f"The link to {self.address} ended: {self.ended.result()}.")
        question.id = number = self.next_number()
        self._waiting[number] = self._loop.create_future()
        self._ask(question)
        return number

    def pass_on(self, question: Question, heard: Heard) -> None:
        """Ask without waiting; only where it `has_room`."""
        question.id = number = self.next_number()
        self._hearing[number] = heard
        self._ask(question)

    async def answer(self, number: int) -> Answer:
        """Wait for an answer. Raises LinkLost, BrokerRefusal."""
        answer = await self._waiting[number]
        if answer.HasField("refusal"):
            raise refusal(answer.refusal)
        return answer

    def forget(self, number: int) -> None:
        """Nobody waits for that answer any more."""
        waiting = self._waiting.pop(number, None)
        if waiting is not None and waiting.done() and not waiting.cancelled():
            waiting.exception()  # it was never looked at, and that is fine

    def abandon(self, number: int) -> None:
        """As `forget`, by one who was ended while it waited: an answer that came in that moment is an orphan too."""
        waiting = self._waiting.get(number)
        self.forget(number)
        if waiting is None or not waiting.done() or waiting.cancelled() or self.ended.done():
            return
        if waiting.exception() is None:
            self._orphaned(waiting.result())

    def give_up(self, number: int, error: TandemError) -> None:
        """Whoever waits for an answer gets an error instead."""
        waiting = self._waiting.get(number)
        if waiting is not None and not waiting.done():
            waiting.set_exception(error)

    def tell(self, *questions: Question) -> None:
        """Say something that has no answer; nothing where the link has ended."""
        if not self.ended.done():
            self._ask(*questions)

    # -- the stream -------------------------------------------------------------------------------------------------

    def _ask(self, *questions: Question) -> None:
        self.put(broker_pb2.LinkRequest(questions=questions).SerializeToString())

    def put(self, request: bytes) -> None:
        """Send a LinkRequest, with all others of this turn."""
        self._unsent.append(request)
        self._unsent_bytes += len(request)
        self.flush_soon()

    def flush_soon(self) -> None:
        """Send what there is at the end of this turn, with what the compiled core has gathered."""
        if not self._due:
            self._due = True
            self._loop.call_soon(self._flush)

    @property
    def has_room(self) -> bool:
        """Whether it takes more: it has not ended, and its store reads."""
        return self._unsent_bytes <= MOST_UNSENT and not self.ended.done()

    def _flush(self) -> None:
        self._due = False
        call = self._call
        if call is None or call.done() or self.ended.done():
            return
        if self.held is not None:
            for request in self.held.take():
                self._unsent.append(request)
                self._unsent_bytes += len(request)
        while self._unsent:
            requests = [self._unsent.popleft()]
            size = len(requests[0])
            while self._unsent and size + len(self._unsent[0]) <= _MOST_BYTES:
                size += len(self._unsent[0])
                requests.append(self._unsent.popleft())
            if not call.write_now(b"".join(requests)):
                self._unsent.extendleft(reversed(requests))
                return  # `on_writable` comes
            self._unsent_bytes -= size
        call.flush()
        while self._room and self._unsent_bytes <= MOST_UNSENT:
            room = self._room.popleft()
            if not room.done():
                room.set_result(None)

    def _hear(self, response: bytes) -> None:
        if self.held is not None:
            response = self.held.hear(response)
        if not response:
            return
        for answer in broker_pb2.LinkResponse.FromString(response).answers:
            heard = self._hearing.pop(answer.id, None)
            if heard is not None:
                self._tell(heard, answer)
                continue
            waiting = self._waiting.get(answer.id)
            if waiting is None or waiting.done():
                if self.held is None or not self.held.told(answer):
                    self._orphaned(answer)
            else:
                waiting.set_result(answer)

    def _tell(self, heard: Heard, answer: Answer | None) -> None:
        try:
            heard(answer)
        except Exception as error:  # noqa: BLE001 - others wait too
            log.failure("the answer of a broker makes no sense", error, address=self.address)
