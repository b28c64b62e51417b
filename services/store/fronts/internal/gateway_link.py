"""The link of one gateway: questions in, answers out, in any order."""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Sequence
from functools import partial
from typing import Any, NamedTuple

from google.protobuf.message import DecodeError

from tandemmq.broker.v1 import broker_pb2
from tandemmq.common.access.errors import Unauthenticated
from tandemmq.common.access.needs import Need, publish, subscribe
from tandemmq.common.access.needs import group as use_group
from tandemmq.common.errors import Kind, TandemError
from tandemmq.common.grpc_transport import Answering
from tandemmq.common.log_output import get_log
from tandemmq.common.serving.guard import CallGuard
from tandemmq.store.broker.errors import BadRequest
from tandemmq.store.broker.submission import Receipt
from tandemmq.store.delivery.delivery import Delivery
from tandemmq.store.delivery.members.member_questions import MemberAnswer, MemberQuestion
from tandemmq.store.delivery.members.sessions import CheckTransaction, Command
from tandemmq.store.delivery.port import Batch, Outcome
from tandemmq.store.fronts.direct_port import stored
from tandemmq.store.fronts.internal import gateway_answers as told
from tandemmq.store.fronts.internal.gateway_acknowledgements import GatewayAcknowledgements
from tandemmq.store.fronts.internal.gateway_credit import GatewayCredit
from tandemmq.store.fronts.internal.gateway_entries import GROUP, TOPIC, FoundEntries, group_of, topic_of
from tandemmq.store.fronts.internal.gateway_members import GatewayLease, GatewayMembers
from tandemmq.store.fronts.internal.gateway_receives import GatewayReceives
from tandemmq.store.fronts.internal.gateway_sends import GatewaySends, LinkCore

log = get_log(__name__)

Question = broker_pb2.Question
Answer = broker_pb2.Answer

_MOST_BYTES = 1 << 20
"""Of one message of the stream, unless a single answer has more."""
_AGAIN_SECONDS = 0.005
"""After so long what could not be written is tried again."""
MOST_UNSENT = 64 << 20
"""Bytes of answers that wait for a gateway to read; then its link ends: it does not read."""


class BrokerParts(NamedTuple):
    """What answers gateways."""

    name: str
    delivery: Delivery
    members: GatewayMembers
    core: LinkCore | None = None
    """Stores plain messages, where it is used."""


class GatewayNotReading(TandemError):
    """A gateway asks, and does not read the answers."""

    kind = Kind.EXHAUSTED


class GatewayLink:
    """One call of Link, after its Hello."""

    def __init__(
        self,
        parts: BrokerParts,
        guard: CallGuard,
        call: Answering[bytes, bytes],
        epoch: Callable[[], int],
    ) -> None:
        """`guard` knows the users that a gateway may vouch for; `epoch`: of this store's mastership.

        `call`: with the bytes of LinkRequests and LinkResponses.
        """
        self._parts = parts
        self._guard = guard
        self._call = call
        self._epoch = epoch
        broker = parts.delivery.broker
        self._timers = broker.store.timers
        plain = parts.core if guard.gate is None else None  # it does not look at who may do what
        self._sends = None if plain is None else GatewaySends(plain, broker.acknowledgement)
        self._lease: GatewayLease | None = None
        self._entries = FoundEntries(broker.topics, parts.delivery.groups, self._timers, self._changed)
        self._credit = GatewayCredit()
        delivery = parts.delivery
        self._receives = GatewayReceives(
            delivery, delivery.journal, self._credit, self._give, self._receive_later, self._timers.call_soon
        )
        self._acknowledgements = GatewayAcknowledgements(
            delivery, delivery.journal, broker.acknowledgement, self._say, self._acknowledge_later
        )
        self._tasks: dict[int, asyncio.Task[None]] = {}
        self._given: dict[int, Batch] = {}
        self._unsent: deque[bytes] = deque()
        """LinkResponses; one after the other they are one."""
        self._due = False
        self._over: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._ask = self._ask_client  # one object: links are compared by it
        self._done = broker_pb2.Done()
        self._handlers: dict[str, Callable[[int, Any], None]] = {
            "hello": self._hello,
            "receive": self._receive,
            "end_receive": self._end_receive,
            "acknowledge": self._acknowledge,
            "change_invisible": self._change_invisible,
            "forward": self._forward,
            "end_transaction": self._end_transaction,
            "recall": self._recall,
            "find_topic": self._find_topic,
            "find_group": self._find_group,
            "create_topic": self._create_topic,
            "create_group": self._create_group,
            "gone": self._gone,
            "members": self._members,
            "credit": self._more_credit,
            "answered": self._answered,
        }

    # -- life -------------------------------------------------------------------------------------------------------

    async def run(self) -> None:
        """From the first question to the end of the call. Raises BadRequest, and what `stop` was given."""
        heard = self._call.listen(self._hear)
        try:
            await asyncio.wait((heard, self._over), return_when=asyncio.FIRST_COMPLETED)
            for ended in (heard, self._over):
                if ended.done():
                    ended.result()
        finally:
            if heard.done() and not heard.cancelled():
                heard.exception()  # its caller has gone before that could be told
            self._flush()
            self._over.cancel()
            self._entries.end()
            for task in tuple(self._tasks.values()):
                task.cancel()
            self._given.clear()  # neither sent nor released: clients may have them
            if self._lease is not None:
                self._parts.members.unlinked(self._lease, self._ask)

    def _connected(self) -> bool:
        return not self._call.over

    def stop(self, error: TandemError) -> None:
        """End the call with an error."""
        if not self._over.done():
            self._over.set_exception(error)

    # -- questions --------------------------------------------------------------------------------------------------

    def _hear(self, data: bytes) -> None:
        """All questions of a turn; those of a kind are looked after together. Raises BadRequest."""
        if self._sends is not None and self._lease is not None:
            data = self._sends.take(data, self._write)
            if not data:
                return
        sends: dict[int, broker_pb2.Message] = {}
        for question in _questions(data):
            kind = question.WhichOneof("question")
            if (kind == "hello") is not (self._lease is None):
                raise BadRequest("The first question on a link is Hello, and no other one is.")
            if kind is None:
                self._answer(question.id, refusal=told.refusal(BadRequest("The question is none that is known.")))
                continue
            try:
                self._authorize(kind, question)
            except TandemError as error:
                self._answer(question.id, refusal=told.refusal(error))
                continue
            if kind == "send":
                sends[question.id] = question.send
            else:
                self._handlers[kind](question.id, getattr(question, kind))
        if sends:
            self._send(sends)
        self._receives.end_turn()
        self._acknowledgements.end_turn()

    def _authorize(self, kind: str, question: Question) -> None:
        """Whether the user for whom a gateway asks may. Raises Unauthenticated, PermissionDenied."""
        gate = self._guard.gate
        needs = _NEEDS.get(kind)
        if gate is None or needs is None:
            return
        principal = gate.keeper.table.principals.get(question.user)
        if principal is None:
            raise Unauthenticated("the gateway has not said for whom it asks, or nobody of that name is known here")
        principal.demand(needs(getattr(question, kind)), kind)

    def _hello(self, number: int, hello: broker_pb2.Hello) -> None:
        self._lease = self._parts.members.linked(hello.gateway, self._ask)
        self._answer(number, welcome=broker_pb2.Welcome(broker=self._parts.name, epoch=self._epoch()))

    def _send(self, sends: dict[int, broker_pb2.Message]) -> None:
        numbers = list(sends)

        def outcome(at: int, became: Receipt | TandemError) -> None:
            if isinstance(became, TandemError):
                self._answer(numbers[at], refusal=told.refusal(became))
            else:
                self._answer(numbers[at], stored=told.stored(stored(became)))

        self._parts.delivery.broker.submit([told.new_message(one) for one in sends.values()], outcome)

    def _receive(self, number: int, asked: broker_pb2.Receive) -> None:
        if not self._receives.keep(number, asked):
            self._receive_later(number, asked)

    def _receive_later(self, number: int, asked: broker_pb2.Receive) -> None:
        async def receive() -> None:
            batch = await self._parts.delivery.receive(told.wish(asked), self._credit.room)
            given = told.given(batch)
            self._credit.taken(given.bytes)
            self._give(number, given, batch)

        self._start(number, receive())

    def _give(self, number: int, given: broker_pb2.Given, batch: Batch) -> None:
        if self._over.done() or self._call.over:
            batch.release()
            return
        if batch.messages:
            self._given[number] = batch
        self._answer(number, given=given)

    def _end_receive(self, number: int, ended: broker_pb2.EndReceive) -> None:
        batch = self._given.pop(ended.id, None)
        if batch is not None:
            if ended.sent:
                batch.sent(self._connected)
            else:
                batch.release()
        elif (task := self._tasks.get(ended.id)) is not None:
            task.cancel()
        else:
            self._receives.give_up(ended.id)

    def _acknowledge(self, number: int, asked: broker_pb2.Acknowledge) -> None:
        if not self._acknowledgements.keep(number, asked):
            self._acknowledge_later(number, asked)

    def _acknowledge_later(self, number: int, asked: broker_pb2.Acknowledge) -> None:
        async def acknowledge() -> None:
            handles = list(asked.handles)
            outcomes = await self._parts.delivery.acknowledge(asked.group, asked.topic, handles, in_time=asked.in_time)
            self._say(number, outcomes)

        self._start(number, acknowledge())

    def _say(self, number: int, became: Sequence[Outcome] | TandemError) -> None:
        if isinstance(became, TandemError):
            self._answer(number, refusal=told.refusal(became))
        else:
            self._answer(number, outcomes=told.outcomes(became))

    def _change_invisible(self, number: int, asked: broker_pb2.ChangeInvisible) -> None:
        changed = self._parts.delivery.change_invisible(asked.group, asked.topic, asked.handle, asked.invisible_ms)
        self._start(number, self._text(number, changed))

    def _forward(self, number: int, asked: broker_pb2.Forward) -> None:
        self._start(number, self._when(number, self._parts.delivery.forward(asked.group, asked.topic, asked.handle)))

    def _end_transaction(self, number: int, asked: broker_pb2.EndTransaction) -> None:
        async def end() -> None:
            ending = told.ending(asked.ending)
            delivery = self._parts.delivery
            await delivery.end_transaction(asked.group, asked.handle, ending, checked=asked.checked)
            self._answer(number, done=self._done)

        self._start(number, end())

    def _recall(self, number: int, asked: broker_pb2.Recall) -> None:
        recalled = self._parts.delivery.recall(asked.topic, asked.handle, told.host(asked.born_host))
        self._start(number, self._text(number, recalled))

    def _find_topic(self, number: int, asked: broker_pb2.FindEntry) -> None:
        self._answer(number, topic=self._entries.find(TOPIC, asked.name))

    def _find_group(self, number: int, asked: broker_pb2.FindEntry) -> None:
        self._answer(number, group=self._entries.find(GROUP, asked.name))

    def _create_topic(self, number: int, asked: broker_pb2.Entry) -> None:
        async def create() -> None:
            await self._parts.delivery.broker.sender.create({asked.name: topic_of(asked)})
            self._answer(number, done=self._done)

        self._start(number, create())

    def _create_group(self, number: int, asked: broker_pb2.Entry) -> None:
        async def create() -> None:
            await self._parts.delivery.groups.add([group_of(asked)])
            self._answer(number, done=self._done)

        self._start(number, create())

    def _gone(self, number: int, gone: broker_pb2.Gone) -> None:
        delivery = self._parts.delivery
        if delivery.sessions.get(gone.group, gone.client_id) is None:  # else it is there through another gateway
            delivery.gone(gone.group, gone.client_id)

    def _members(self, number: int, members: broker_pb2.Members) -> None:
        if self._lease is not None:
            self._parts.members.told(self._lease, members)

    def _more_credit(self, number: int, credit: broker_pb2.Credit) -> None:
        self._credit.add(max(credit.bytes, 0))

    def _answered(self, number: int, given: broker_pb2.MemberAnswer) -> None:
        self._parts.delivery.sessions.answered(given.nonce, MemberAnswer(given.code, given.text))

    # -- answers ----------------------------------------------------------------------------------------------------

    async def _text(self, number: int, awaited: Awaitable[str]) -> None:
        self._answer(number, text=await awaited)

    async def _when(self, number: int, awaited: Awaitable[None]) -> None:
        await awaited
        self._answer(number, done=self._done)

    def _start(self, number: int, answering: Any) -> None:
        """Have a coroutine answer; what it raises is an answer too. None begins when the link is over."""
        if self._over.done():
            answering.close()
            return
        task = asyncio.create_task(answering, name=f"question {number}")
        self._tasks[number] = task
        task.add_done_callback(partial(self._ended, number))

    def _ended(self, number: int, task: "asyncio.Task[None]") -> None:
        self._tasks.pop(number, None)
        error = None if task.cancelled() else task.exception()
        if error is None:
            return
        if not isinstance(error, TandemError):
            log.failure("a gateway's question failed", error)
            error = BrokerFault("A fault of the store; its log has it.")
        self._answer(number, refusal=told.refusal(error))

    def _answer(self, number: int, **answer: Any) -> None:
        """Put an answer on its way, with all others of this turn."""
        self._put(broker_pb2.LinkResponse(answers=(Answer(id=number, **answer),)).SerializeToString())

    def _put(self, response: bytes) -> None:
        """The same with several, in a LinkResponse."""
        if self._over.done():
            return
        self._unsent.append(response)
        if not self._due:
            self._due = True
            self._timers.call_soon(self._flush)

    def _write(self, response: bytes) -> None:
        """The same, without a turn in between: it leaves with the end of the read that brought the questions."""
        if self._over.done():
            return
        if self._unsent or self._call.over or not self._call.write_now(response):
            self._put(response)

    def _flush(self) -> None:
        self._due = False
        if self._over.done() or self._call.over:
            return
        while self._unsent:
            responses = [self._unsent.popleft()]
            size = len(responses[0])
            while self._unsent and size < _MOST_BYTES:
                size += len(self._unsent[0])
                responses.append(self._unsent.popleft())
            if not self._call.write_now(b"".join(responses)):
                self._unsent.extendleft(reversed(responses))
                self._check_reader()
                self._due = True
                self._timers.call_later(_AGAIN_SECONDS, self._flush)
                return
        self._call.flush()

    def _check_reader(self) -> None:
        if sum(map(len, self._unsent)) > MOST_UNSENT:
            self.stop(GatewayNotReading("The gateway does not read what it is answered."))

    # -- unasked ----------------------------------------------------------------------------------------------------

    def _changed(self, kind: str, entry: broker_pb2.Entry) -> None:
        self._answer(0, **{kind: entry})

    def _ask_client(self, session: int, command: Command) -> bool:
        """Put a command for a client on its way; that a group has changed is no news to clients behind gateways."""
        if self._over.done() or self._call.over:
            return False
        if isinstance(command, CheckTransaction):
            self._answer(0, check=told.check(session, command))
        elif isinstance(command, MemberQuestion):
            self._answer(0, ask=told.ask(session, command))
        return True


class BrokerFault(TandemError):
    """Something went wrong in the store that nobody has foreseen."""


def _questions(data: bytes) -> Iterable[Question]:
    """Those of a LinkRequest. Raises BadRequest."""
    try:
        return broker_pb2.LinkRequest.FromString(data).questions
    except DecodeError:
        raise BadRequest("What came on the link is no LinkRequest.") from None


def _consume(asked: Any) -> Iterable[Need]:
    return use_group(asked.group), subscribe(asked.topic)


def _of_sender(asked: Any) -> Iterable[Need]:
    return (publish(asked.topic),)


_NEEDS: dict[str, Callable[[Any], Iterable[Need]]] = {
    "send": _of_sender,
    "end_transaction": _of_sender,
    "recall": _of_sender,
    "receive": _consume,
    "acknowledge": _consume,
    "change_invisible": _consume,
    "forward": _consume,
    "create_topic": lambda asked: (publish(asked.name),),
    "create_group": lambda asked: (use_group(asked.name),),
    "gone": lambda asked: (use_group(asked.group),),
}
"""What users need for whom a gateway asks; the rest is the gateway's own business, as one that may be linked at all."""
