"""ClusterDelivery: messages of the broker that is asked, handles and transactions at the brokers that they name."""

import asyncio
from collections.abc import Coroutine, Sequence
from dataclasses import dataclass, field
from typing import Any

from tandemmq.broker.v1 import broker_pb2
from tandemmq.common.errors import Kind, TandemError
from tandemmq.gateway import questions
from tandemmq.gateway.any_broker import FirstBatch
from tandemmq.gateway.broker_link import BrokerLink
from tandemmq.gateway.clients import GatewaySessions
from tandemmq.gateway.cluster_tables import ClusterTables
from tandemmq.gateway.errors import BrokerAway, stopping
from tandemmq.gateway.questions import Answer, Question
from tandemmq.gateway.remote_broker import ELSEWHERE, RemoteBroker
from tandemmq.gateway.tokens import Tokens
from tandemmq.store.delivery.port import Batch, Connected, Ending, GivenMessage, Outcome, Room, Wish
from tandemmq.store.format.host import Host


class GatewayBatch:
    """See `delivery.port.Batch`: the store hears of the end, and gets its credit back."""

    __slots__ = ("_link", "_number", "_size", "messages")

    def __init__(
        self, messages: Sequence[GivenMessage] = (), link: BrokerLink | None = None, number: int = 0, size: int = 0
    ) -> None:
        self.messages = messages
        self._link = link
        self._number = number
        self._size = size

    def sent(self, connected: Connected) -> None:
        """See `Batch`. To the store, the connection is the link of this gateway."""
        self._end(sent=True)

    def release(self) -> None:
        """See `Batch`."""
        self._end(sent=False)

    def _end(self, *, sent: bool) -> None:
        link, self._link = self._link, None
        if link is not None:
            ended = broker_pb2.EndReceive(id=self._number, sent=sent)
            link.tell(Question(end_receive=ended), Question(credit=broker_pb2.Credit(bytes=self._size)))


def _end_receive(link: BrokerLink, number: int, *, sent: bool) -> None:
    link.tell(Question(end_receive=broker_pb2.EndReceive(id=number, sent=sent)))


@dataclass(slots=True)
class Polls:
    """Receives that wait at brokers, of all callers."""

    waiting: set[tuple[BrokerLink, int]] = field(default_factory=set)
    stopping: bool = False

    def drain(self) -> None:
        """The gateway stops: end them, and every later one, with StoreStopping."""
        self.stopping = True
        for link, number in tuple(self.waiting):
            link.give_up(number, stopping())


class ClusterDelivery:
    """A `ConsumingPort` over all brokers, for one user."""

    __slots__ = ("_polls", "_sessions", "_tables", "_tokens", "_user")

    def __init__(
        self, tables: ClusterTables, tokens: Tokens, sessions: GatewaySessions, polls: Polls, user: str
    ) -> None:
        """`user`: for whom is asked; empty where nobody has said."""
        self._tables = tables
        self._tokens = tokens
        self._sessions = sessions
        self._polls = polls
        self._user = user

    # -- receive ----------------------------------------------------------------------------------------------------

    async def receive(self, wish: Wish, room: Room | None = None) -> Batch:
        """See `ConsumingPort`. A broker that is down has no messages for now."""
        named = self._tables.brokers.get(wish.broker)
        if named is not None:
            return await self._from(named, wish, wish.wait_ms, room)
        brokers = self._tables.with_topic(wish.topic)
        if len(brokers) == 1:
            return await self._from(brokers[0], wish, wish.wait_ms, room)

        def ask(broker: RemoteBroker, wait_ms: int) -> Coroutine[Any, Any, Batch]:
            return self._from(broker, wish, wait_ms, room)

        return await FirstBatch(ask, brokers[0].timers).of(brokers, wish.wait_ms)

    async def _from(self, broker: RemoteBroker, wish: Wish, wait_ms: int, room: Room | None) -> Batch:
        timers = broker.timers
        until = timers.time() + wait_ms / 1_000
        while True:
            try:
                link = await broker.current(max(until - timers.time(), 0))
                await self._tables.prepare_group(wish.group, broker, self._user)
                if room is not None:
                    await room(wish.most_bytes)
                return await self._ask_for(broker, link, wish, max(round((until - timers.time()) * 1_000), 0))
            except TandemError as error:
                if error.kind not in ELSEWHERE:
                    raise
                left = until - timers.time()
                if self._polls.stopping or left <= 0:
                    raise stopping() from error
                await broker.changed(min(left, 0.2))

    async def _ask_for(self, broker: RemoteBroker, link: BrokerLink, wish: Wish, wait_ms: int) -> Batch:
        if self._polls.stopping:
            raise stopping()
        question = questions.receive(wish, wait_ms)
        question.user = self._user
        number = link.post(question)
        self._polls.waiting.add((link, number))
        try:
            answer = await link.answer(number)
        except BaseException:
            _end_receive(link, number, sent=False)
            link.abandon(number)
            raise
        finally:
            self._polls.waiting.discard((link, number))
            link.forget(number)
        given = questions.given(answer.given)
        if not given.messages:
            return GatewayBatch()
        made = self._tokens.made
        messages = [one._replace(handle=made(broker.name, one.handle)) for one in given.messages]
        return GatewayBatch(messages, link, number, given.size)

    # -- what became of messages ------------------------------------------------------------------------------------

    async def acknowledge(
        self, group: str, topic: str, handles: Sequence[str], *, in_time: bool = False
    ) -> list[Outcome]:
        """See `ConsumingPort`."""
        outcomes: dict[str, Outcome] = {}
        shares: dict[str, dict[str, str]] = {}
        for token in handles:
            try:
                broker, own = self._tokens.read(token)
                shares.setdefault(broker, {})[own] = token
            except TandemError as error:
                outcomes[token] = Outcome(token, error)
        each = [self._acknowledge(broker, group, topic, tokens, in_time=in_time) for broker, tokens in shares.items()]
        for share in [await each[0]] if len(each) == 1 else await asyncio.gather(*each):
            outcomes |= share
        return [outcomes[token] for token in handles]

    async def _acknowledge(
        self, broker: str, group: str, topic: str, tokens: dict[str, str], *, in_time: bool
    ) -> dict[str, Outcome]:
        """Those of one broker, by token. `tokens`: by the broker's own handle."""
        asked = broker_pb2.Acknowledge(group=group, topic=topic, handles=list(tokens), in_time=in_time)
        try:
            answer = await self._ask(broker, Question(acknowledge=asked))
        except TandemError as error:
            return {token: Outcome(token, error) for token in tokens.values()}
        told = questions.outcomes(answer.outcomes)
        return {token: Outcome(token, one.error) for token, one in zip(tokens.values(), told, strict=True)}

    async def change_invisible(self, group: str, topic: str, handle: str, invisible_ms: int) -> str:
        """See `ConsumingPort`."""
        broker, own = self._tokens.read(handle)
        asked = broker_pb2.ChangeInvisible(group=group, topic=topic, handle=own, invisible_ms=invisible_ms)
        answer = await self._ask(broker, Question(change_invisible=asked))
        return self._tokens.made(broker, answer.text)

    async def forward(self, group: str, topic: str, handle: str) -> None:
        """See `ConsumingPort`."""
        broker, own = self._tokens.read(handle)
        await self._ask(broker, Question(forward=broker_pb2.Forward(group=group, topic=topic, handle=own)))

    # -- what producers say -----------------------------------------------------------------------------------------

    async def end_transaction(self, group: str, handle: str, ending: Ending, *, checked: bool = False) -> None:
        """See `ConsumingPort`. A bare transaction id names no broker: each is asked in turn."""
        asked = broker_pb2.EndTransaction(topic=group, group=group, handle=handle, ending=ending.value, checked=checked)
        if self._tokens.names_broker(handle):
            broker, asked.handle = self._tokens.read(handle)
            await self._ask(broker, Question(end_transaction=asked))
            return
        unknown: TandemError = BrokerAway("No broker answers.")
        for name in self._tables.brokers:
            try:
                await self._ask(name, Question(end_transaction=asked))
                return
            except TandemError as error:
                if error.kind not in (Kind.UNKNOWN_TRANSACTION, *ELSEWHERE):
                    raise
                unknown = error
        raise unknown

    async def recall(self, topic: str, handle: str, born_host: Host) -> str:
        """See `ConsumingPort`."""
        broker, own = self._tokens.read(handle)
        asked = broker_pb2.Recall(topic=topic, handle=own, born_host=str(born_host))
        return (await self._ask(broker, Question(recall=asked))).text

    def gone(self, group: str, client_id: str) -> None:
        """See `ConsumingPort`."""
        self._sessions.flush()  # first: what it holds comes again when it is there through nobody else
        for broker in self._tables.brokers.values():
            broker.tell(Question(user=self._user, gone=broker_pb2.Gone(group=group, client_id=client_id)))

    async def _ask(self, broker: str, question: Question) -> Answer:
        question.user = self._user
        return await self._tables.brokers[broker].ask(question)
