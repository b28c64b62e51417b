"""RemoteBroker: one broker, a node or a pair, at whichever of its addresses its master is.

A store that is no master says so, and a master that was replaced learns it and ends its links. One that is cut off from
its successor does not: so the other addresses are asked now and then, and of two masters the newer one counts.
"""

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Callable, Sequence

import grpc

from tandemmq.broker.v1 import broker_pb2
from tandemmq.common.calling.backoff import Backoff
from tandemmq.common.calling.followed_peer import FollowedPeer
from tandemmq.common.errors import Kind, TandemError
from tandemmq.common.log_output import get_log
from tandemmq.common.timers import LoopTimers, Timers, first_of
from tandemmq.gateway.broker_link import BrokerLink
from tandemmq.gateway.errors import BrokerAway, LinkLost, WrongBroker
from tandemmq.gateway.questions import Answer, Question
from tandemmq.gateway.remote_entries import RemoteEntries
from tandemmq.store.broker.topics import TopicConfig
from tandemmq.store.delivery.members.groups import GroupConfig

log = get_log(__name__)

DIAL_SECONDS = 3.0
FIRST_PAUSE, LONGEST_PAUSE = 0.05, 0.5
RIVALS_SECONDS = 2.0
"""So often the other addresses of a broker are asked whether there is a newer master."""
_OTHERS_SECONDS = 0.2
"""One master has answered: the other addresses have so long to answer that there is a newer one."""
PATIENCE_SECONDS = 5.0
"""Who asks a broker that was there so long ago waits for it: it restarts, or its slave is promoted."""
HELD_SECONDS = 9.0
"""... and who sends to it: three tries of a client whose time-out is the usual 3 s hide that from its application."""

ELSEWHERE = frozenset({Kind.AWAY, Kind.STARTING, Kind.STOPPING, Kind.WRONG_ROLE, Kind.NOT_DELIVERING, Kind.READ_ONLY})
"""Refusals of a store that may be about to be replaced."""


class RemoteBroker:
    """One broker of the cluster."""

    def __init__(
        self,
        name: str,
        addresses: Sequence[str],
        dial: Callable[[str], grpc.aio.Channel],
        gateway: str,
        credit: int,
        timers: Timers | None = None,
    ) -> None:
        """`credit`: bytes of messages that its store may give ahead of clients."""
        self.name = name
        self.link: BrokerLink | None = None
        """The link to its master; None while there is none."""
        self.topics: RemoteEntries[TopicConfig] = RemoteEntries(
            TopicConfig.from_json, self._find_topic, self._topics_changed
        )
        self.groups: RemoteEntries[GroupConfig] = RemoteEntries(GroupConfig.from_json, self._find_group)
        self.linked: Callable[[RemoteBroker], None] = lambda broker: None
        """Called with each new link, before anything is asked on it."""
        self.made: Callable[[RemoteBroker, BrokerLink], None] = lambda broker, link: None
        """Called before `linked`, and before anybody else sees the link."""
        self.checks: Callable[[RemoteBroker, broker_pb2.Check], None] = lambda broker, check: None
        """Hears which transactions producers are to be asked about."""
        self.member_asked: Callable[[RemoteBroker, broker_pb2.AskMember], None] = lambda broker, asked: None
        """Hears what an operator asks of clients."""
        self.other_topics: Callable[[], None] = lambda: None
        """Called when its topics may be others than before, or the link is another one, or none."""
        self.links = 0
        """How often there was a link."""
        self._addresses = tuple(addresses)
        self._dial = dial
        self._gateway = gateway
        self._credit = credit
        self.timers: Timers = timers or LoopTimers()
        self._lost_at = 0.0
        self._noted = ""
        """What the log has heard of an address that cannot be asked."""
        self._turn: asyncio.Future[None] | None = None
        self._task: asyncio.Task[None] | None = None
        self.peer = FollowedPeer("broker", name)

    # -- life -------------------------------------------------------------------------------------------------------

    def start(self) -> None:
        """Look for the master from now on."""
        self._lost_at = self.timers.time()
        backoff = Backoff(FIRST_PAUSE, LONGEST_PAUSE)
        self._task = asyncio.create_task(self.peer.follow(self._links, backoff), name=f"broker {self.name}")

    async def stop(self) -> None:
        """End the link."""
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task

    @property
    def link_with_room(self) -> BrokerLink | None:
        """The link, where there is one that takes more questions."""
        return self.link if self.link is not None and self.link.has_room else None

    @property
    def there(self) -> bool:
        """Whether it is linked, or was a moment ago: then it is worth waiting for."""
        return self.was_there(PATIENCE_SECONDS)

    def was_there(self, seconds: float) -> bool:
        """Whether it is linked, or was within so many seconds."""
        return self.link is not None or self.timers.time() - self._lost_at < seconds

    async def _links(self) -> AsyncGenerator[None, None]:
        """One link after another; yields when one has ended. Raises BrokerAway, WrongBroker."""
        while True:
            await self._use(await self._found(self._addresses))
            yield

    async def _use(self, link: BrokerLink) -> None:
        """Be linked, until that ends or a newer master is found."""
        try:
            while True:
                self._begin(link)
                newer = await self._newer(link)
                if newer is None:
                    break
                self._end(link)
                await link.close()
                link = newer
        finally:
            self._end(link)
            await link.close()

    async def _newer(self, link: BrokerLink) -> BrokerLink | None:
        """A link to a newer master, as soon as there is one; None when the present link has ended."""
        others = [one for one in self._addresses if one != link.address]
        while True:
            await first_of(self.timers, (link.ended,), RIVALS_SECONDS if others else None)
            if link.ended.done():
                self.peer.gone(str(link.ended.result()))
                return None
            rival = await self._rival(link, others)
            if rival is None:
                continue
            if rival.epoch > link.epoch:
                self.peer.gone(f"it was replaced by {rival.address}")
                return rival
            await rival.close()

    async def _rival(self, link: BrokerLink, others: Sequence[str]) -> BrokerLink | None:
        """A link to another master that says it is one; None where there is none, or the present link ends first."""
        look = asyncio.create_task(self._found(others))
        try:
            await first_of(self.timers, (link.ended, look))
        finally:
            look.cancel()  # nothing, where it is done
            await asyncio.wait({look})
        error = None if look.cancelled() else look.exception()
        if error is not None and not isinstance(error, BrokerAway):
            self._note(error)
        return None if look.cancelled() or error is not None else look.result()

    async def _found(self, addresses: Sequence[str]) -> BrokerLink:
        """A link to the newest master that answers at these addresses. Raises BrokerAway, or what a try has raised."""
        tries = {asyncio.create_task(self._try(address)) for address in addresses}
        waiting, links = set(tries), list[BrokerLink]()
        try:
            while waiting:
                await first_of(self.timers, waiting, _OTHERS_SECONDS if links else None)
                done = {one for one in waiting if one.done()}
                waiting -= done
                links += [one.result() for one in done if one.exception() is None]
                if not done:  # one is there, the others do not answer
                    break
        except asyncio.CancelledError:
            for link in links:
                await link.close()
            raise
        finally:
            for one in waiting:
                one.cancel()
            failures = [one.exception() for one in await _settled(tries)]
        wrong = next((one for one in failures if one is not None and not isinstance(one, BrokerAway)), None)
        if not links:
            raise wrong or BrokerAway("; ".join(str(one) for one in failures) or "It has no address.")
        if wrong is not None:
            self._note(wrong)
        links.sort(key=lambda one: one.epoch)
        for older in links[:-1]:
            await older.close()
        return links[-1]

    def _note(self, error: BaseException) -> None:
        """One of its addresses cannot be asked: a newer master would not be found there. The log hears of it once."""
        reason = str(error) or type(error).__name__
        if reason == self._noted:
            return
        self._noted = reason
        if isinstance(error, TandemError):
            log.warning("an address of a broker cannot be asked", broker=self.name, reason=error.explain())
        else:
            log.failure("an address of a broker cannot be asked", error, broker=self.name)

    async def _try(self, address: str) -> BrokerLink:
        link = BrokerLink(self._dial(address), address, self._gateway, self._orphaned, self.timers)
        welcome = await link.begin(DIAL_SECONDS)
        if welcome.broker != self.name:
            await link.close()
            raise WrongBroker(
                f"{address} is broker {welcome.broker}, not {self.name}.",
                remedy="Set `brokers` of the gateway to each broker's own brokerName.",
            )
        return link

    def _begin(self, link: BrokerLink) -> None:
        self.topics.forget()
        self.groups.forget()
        self.links += 1
        self.peer.came(address=link.address, epoch=link.epoch)
        link.tell(Question(credit=broker_pb2.Credit(bytes=self._credit)))
        self.made(self, link)
        self.link = link
        self.linked(self)
        self._tell()

    def _end(self, link: BrokerLink) -> None:
        if self.link is link:
            self.link = None
            self._lost_at = self.timers.time()
            self._tell()

    def _tell(self) -> None:
        self.other_topics()
        changed, self._turn = self._turn, None
        if changed is not None and not changed.done():
            changed.set_result(None)

    # -- asking -----------------------------------------------------------------------------------------------------

    async def current(self, seconds: float | None = None, patience: float = PATIENCE_SECONDS) -> BrokerLink:
        """The link; waits for it until `patience` after it was lost, or for `seconds`. Raises BrokerAway."""
        if self.link is not None and self.link.ended.done():
            self._end(self.link)  # whoever was asking on it comes here before the task that looks for the next one
        until = self._lost_at + patience if seconds is None else self.timers.time() + seconds
        while self.link is None:
            left = until - self.timers.time()
            if left <= 0:
                raise BrokerAway(
                    f"Broker {self.name} does not answer at {' or '.join(self._addresses)}.",
                    remedy="Its queues are back as soon as it is, or its slave was promoted.",
                )
            await self.changed(left)
        return self.link

    async def changed(self, seconds: float) -> None:
        """Wait until a link has come or gone, so long at most."""
        if self._turn is None or self._turn.done():
            self._turn = asyncio.get_running_loop().create_future()
        await first_of(self.timers, (self._turn,), seconds)

    async def ask(self, question: Question, seconds: float | None = None, patience: float = PATIENCE_SECONDS) -> Answer:
        """Ask, and ask again where the link was lost meanwhile: for what may be done twice.

        That goes on until `patience` after the loss of the link, or for `seconds`. Raises BrokerAway, LinkLost,
        BrokerRefusal.
        """
        until = self.timers.time() + (patience if seconds is None else seconds)
        while True:
            link = await self.current(None if seconds is None else max(until - self.timers.time(), 0), patience)
            try:
                return await link.ask(question)
            except TandemError as error:
                if error.kind not in ELSEWHERE or self.timers.time() >= until:
                    raise
                if self.link is link and not isinstance(error, LinkLost):
                    await self.changed(min(0.2, until - self.timers.time()))
                    if self.link is link and error.kind is Kind.READ_ONLY:
                        raise  # it is the store's own trouble

    def tell(self, question: Question) -> None:
        """Say something that has no answer; nothing while there is no link."""
        if self.link is not None:
            self.link.tell(question)

    def _topics_changed(self) -> None:
        self.other_topics()

    async def _find_topic(self, name: str) -> broker_pb2.Entry:
        return (await self.ask(Question(find_topic=broker_pb2.FindEntry(name=name)))).topic

    async def _find_group(self, name: str) -> broker_pb2.Entry:
        return (await self.ask(Question(find_group=broker_pb2.FindEntry(name=name)))).group

    # -- unasked ----------------------------------------------------------------------------------------------------

    def _orphaned(self, answer: Answer) -> None:
        kind = answer.WhichOneof("answer")
        if kind == "given":  # its receive was given up, and the store told: the memory is free again
            self.tell(Question(credit=broker_pb2.Credit(bytes=answer.given.bytes)))
        elif answer.id:
            return
        elif kind == "topic":
            self.topics.changed(answer.topic)
        elif kind == "group":
            self.groups.changed(answer.group)
        elif kind == "check":
            self.checks(self, answer.check)
        elif kind == "ask":
            self.member_asked(self, answer.ask)


async def _settled(tries: "set[asyncio.Task[BrokerLink]]") -> "list[asyncio.Task[BrokerLink]]":
    """Those that failed, when all have ended."""
    await asyncio.wait(tries)
    return [one for one in tries if not one.cancelled() and one.exception() is not None]
