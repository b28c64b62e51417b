"""NamesLink: keeps this broker registered at name servers, RocketMQ's or ours, each on its own.

It registers when it begins, after each change of topics or role, and every `registerNameServerPeriod`, over one kept
connection: a name server forgets a broker whose connection closes. When the store stops it unregisters.

At RocketMQ's name server the last master that registers wins, and whoever unregisters removes it, even from another
address. So a master that finds another one in its place waits, unless it has just been promoted: it may have been
replaced while it was away or asleep, which its peers will tell it. If nothing does, it takes the place. One that takes
it back lives, and two masters that took turns would send clients from one log to another: so it keeps the place from
then on, but from a master that was promoted, be it before that has started. And who finds another one in its place
leaves without a word.
"""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import suppress
from typing import cast

from tandemmq.common.calling.backoff import Backoff
from tandemmq.common.calling.followed_peer import FollowedPeer
from tandemmq.common.documents import java_json
from tandemmq.common.errors import Kind, TandemError
from tandemmq.common.log_output import get_log
from tandemmq.common.net.remoting.client import RemotingClient
from tandemmq.common.slices import Slices, joined
from tandemmq.common.tasks import end_tasks
from tandemmq.common.timers import Timers, time_limit
from tandemmq.common.wire.remoting.codes import RequestCode
from tandemmq.common.wire.remoting.command import Command
from tandemmq.common.wire.remoting.registration import BrokerIdentity
from tandemmq.store.registered import RegisteredTopics

log = get_log(__name__)

_RETRY_FIRST, _RETRY_MOST = 0.5, 10.0
"""Seconds after a registration that failed."""
_GATHERED_SECONDS = 0.02
"""Changes within so long are registered together."""
_GOODBYE_SECONDS = 2.0
_YIELD_SECONDS = 10.0
"""How long a master waits for another one in its place to go, or to fence it."""


class NamesLink:
    """All name servers."""

    def __init__(
        self, addresses: Sequence[str], registered: RegisteredTopics, period: float, timeout: float, timers: Timers
    ) -> None:
        """`addresses`: `host:port` of each. `period`, and `timeout` of an answer, in seconds."""
        self._servers = [_NameServer(address, registered, period, timeout, timers) for address in addresses]
        self._timers = timers
        self._tasks: list[asyncio.Task[None]] = []

    @property
    def peers(self) -> list[FollowedPeer]:
        """The name servers, there or away."""
        return [server.peer for server in self._servers]

    def start(self) -> None:
        """Register from now on, inside the running event loop."""
        self._tasks = [asyncio.create_task(server.run(), name=f"names {server.address}") for server in self._servers]

    def changed(self) -> None:
        """Topics or the role have changed."""
        for server in self._servers:
            server.wake.set()

    async def settled(self, seconds: float) -> None:
        """Until each name server that can be reached has what there is now, but no longer than so many seconds."""
        with suppress(TimeoutError):
            async with time_limit(self._timers, seconds):
                await asyncio.gather(*(server.settled() for server in self._servers))

    async def stop(self) -> None:
        """Unregister everywhere."""
        await end_tasks(self._timers, *self._tasks)
        await asyncio.gather(*(server.leave() for server in self._servers))


class _NameServer:
    """One of them."""

    def __init__(
        self, address: str, registered: RegisteredTopics, period: float, timeout: float, timers: Timers
    ) -> None:
        self.address = address
        self.wake = asyncio.Event()
        self._registered = registered
        self._period = period
        self._timeout = timeout
        self._timers = timers
        self._client = RemotingClient(address, timers=timers)
        self._known: BrokerIdentity | None = None
        """As which we are registered."""
        self._yielding_since: float | None = None
        self._taken_from: str | None = None
        """The master whose place we took last."""
        self._told = -1
        """The change that was registered last."""
        self._progress = asyncio.Event()
        self.peer = FollowedPeer("name server", address, self._turn)

    async def run(self) -> None:
        """Until cancelled."""
        await self.peer.follow(self._keep, Backoff(_RETRY_FIRST, _RETRY_MOST), self._wait)

    async def _keep(self) -> AsyncGenerator[None, None]:
        """Register again and again; yields each time that it has. Raises as `_register`."""
        while True:
            self.wake.clear()
            await self._register()
            self.peer.came()
            self._turn()
            yield
            await self._wait(self._period)
            await self._timers.sleep(_GATHERED_SECONDS)

    async def _register(self) -> None:
        """Say what there is. Raises PeerGone, PeerSilent, RegistrationRefused, MasterThere."""
        change, who = self._registered.change, self._registered.identity()
        if self._known is not None and self._known != who:
            await self._unregister(self._known)
            self._known = None
        if who is not None:
            is_promotion = self._known is None and self._registered.promoted
            if not (who.broker_id or is_promotion):
                await self._yield_to_another(who)
            slices = Slices(self._timers)
            registration = await self._registered.registration(who, slices)
            await self._ask(registration.to_command(await joined(registration.body(), slices)))
            if self._known is None:
                log.info("registered at a name server", names=self.address, broker=who.name, id=who.broker_id)
            self._known, self._yielding_since = who, None
        self._told = change

    async def _yield_to_another(self, who: BrokerIdentity) -> None:
        """Raises MasterThere, for a while, where another one is registered as the master that we are."""
        holder, now = await self._holder(who), self._timers.time()
        if holder in (None, who.address):
            return
        if holder == self._taken_from and not self._registered.was_promoted:
            raise MasterThere(
                f"{holder} has registered as master of {who.name} again after this one had taken its place: two live "
                f"masters have one name, and clients find that one only",
                remedy="Give each master a brokerName of its own, or stop one of the two.",
            )
        if self._yielding_since is None:
            self._yielding_since = now
        if now - self._yielding_since < _YIELD_SECONDS:
            raise MasterThere(
                f"{holder} is registered as master of {who.name}; if nothing fences this one within {_YIELD_SECONDS:g} "
                f"s, it takes its place"
            )
        self._taken_from = holder
        log.warning("takes the place of another master", names=self.address, broker=who.name, other=holder)

    async def _unregister(self, known: BrokerIdentity) -> None:
        """Be registered no more. Where another one has our place only our connection goes."""
        if await self._holder(known) in (None, known.address):
            await self._ask(Command(RequestCode.UNREGISTER_BROKER, fields=known.to_fields()))
        else:
            await self._client.close()

    async def _holder(self, who: BrokerIdentity) -> str | None:
        """The address that is registered with a name and an id, as far as the name server tells that."""
        answer = await self._client.ask(Command(RequestCode.GET_BROKER_CLUSTER_INFO), self._timeout)
        try:
            found = java_json.loads(bytes(answer.body))["brokerAddrTable"][who.name]["brokerAddrs"]
            return cast(str | None, found.get(str(who.broker_id)))
        except (ValueError, KeyError, TypeError, AttributeError):
            return None

    async def _ask(self, command: Command) -> None:
        answer = await self._client.ask(command, self._timeout)
        if answer.code:
            raise RegistrationRefused(f"it answers {answer.code}: {answer.remark}")

    async def _wait(self, seconds: float) -> None:
        with suppress(TimeoutError):
            async with time_limit(self._timers, seconds):
                await self.wake.wait()

    def _turn(self) -> None:
        progress, self._progress = self._progress, asyncio.Event()
        progress.set()

    async def settled(self) -> None:
        """Until it has what there is now, or cannot be reached."""
        while self._told != self._registered.change and not self.peer.problem:
            await self._progress.wait()

    async def leave(self) -> None:
        """Unregister, if we are registered and it answers."""
        if self._known is not None and self._client.connected:
            with suppress(TandemError, TimeoutError):
                async with time_limit(self._timers, _GOODBYE_SECONDS):
                    await self._unregister(self._known)
        await self._client.close()


class MasterThere(TandemError):
    """Another master of this name is registered."""

    kind = Kind.NOT_POSSIBLE


class RegistrationRefused(TandemError):
    """A name server does not take the registration."""

    kind = Kind.NOT_POSSIBLE
