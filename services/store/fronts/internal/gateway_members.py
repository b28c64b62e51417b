"""The clients of gateways, as members: leased for as long as their gateway is linked, and some seconds longer.

A client may be there through several gateways at a time. It is one member then, of which the newest session with a
stream is asked; when that ends, the next one takes its place. Nothing of a gateway that was killed is forgotten before
its clients had time to come back through another one.
"""

import itertools
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from tandemmq.broker.v1 import broker_pb2
from tandemmq.common.timers import Timers
from tandemmq.store.delivery.members.sessions import Command, Member, Sessions

GRACE_SECONDS = 30.0
"""Members of a gateway whose link was lost stay so long."""
SIGN_OF_LIFE_SECONDS = 30.0
"""So often `Sessions` hears that the members of a linked gateway live: gateways expire them themselves."""

Ask = Callable[[int, Command], bool]
"""Puts a command for a session on its way; False where the gateway takes none now."""

Key = tuple[str, bool, str]
"""Group, whether it is a producer, client id."""


class GatewayPeer:
    """A client behind a gateway. A `Peer`."""

    __slots__ = ("_gateway", "_session")

    def __init__(self, gateway: "GatewayLease", session: int) -> None:
        self._gateway = gateway
        self._session = session

    def ask(self, command: Command) -> bool:
        """See `Peer.ask`."""
        ask = self._gateway.ask
        return ask is not None and ask(self._session, command)


@dataclass(slots=True)
class _Held:
    """One session of a client."""

    gateway: "GatewayLease"
    session: int
    age: int
    """Greater is newer."""
    member: Member

    @property
    def rank(self) -> tuple[bool, int]:
        return self.member.peer is not None, self.age


class GatewayLease:
    """One gateway, and what it has said of its members."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.ask: Ask | None = None
        """None while it is not linked."""
        self.lost_at = 0.0
        self.sessions: dict[int, Key] = {}


class GatewayMembers:
    """The members of all gateways, told to `Sessions`."""

    def __init__(self, sessions: Sessions, timers: Timers) -> None:
        self._sessions = sessions
        self._timers = timers
        self._gateways: dict[str, GatewayLease] = {}
        self._held: dict[Key, list[_Held]] = {}
        self._ages = itertools.count()
        self._watching = False

    # -- links ------------------------------------------------------------------------------------------------------

    def linked(self, name: str, ask: Ask) -> GatewayLease:
        """A gateway has a link, anew or for the first time."""
        gateway = self._gateways.setdefault(name, GatewayLease(name))
        gateway.ask = ask
        if not self._watching:
            self._watching = True
            self._timers.call_later(SIGN_OF_LIFE_SECONDS, self._signs_of_life)
        return gateway

    def unlinked(self, gateway: GatewayLease, ask: Ask) -> None:
        """A link ended. Nothing where a newer one has taken its place."""
        if gateway.ask is ask:
            gateway.ask = None
            gateway.lost_at = self._timers.time()
            self._timers.call_later(GRACE_SECONDS, self._expire, gateway)

    def _expire(self, gateway: GatewayLease) -> None:
        if gateway.ask is None and self._timers.time() - gateway.lost_at >= GRACE_SECONDS:
            self._gateways.pop(gateway.name, None)
            self._forget(gateway, list(gateway.sessions))

    # -- members ----------------------------------------------------------------------------------------------------

    def told(self, gateway: GatewayLease, members: broker_pb2.Members) -> None:
        """A gateway says what has changed, or what there is."""
        gone = set(gateway.sessions) - {one.session for one in members.there} if members.whole else members.gone
        for one in members.there:
            self._there(gateway, one)
        self._forget(gateway, gone)  # last: a client with a new session was there all the time

    def _there(self, gateway: GatewayLease, told: broker_pb2.Member) -> None:
        key = (told.group, told.producer, told.client_id)
        member = Member(
            client_id=told.client_id,
            group=told.group,
            peer=GatewayPeer(gateway, told.session) if told.asked else None,
            producer=told.producer,
            protocol=told.protocol,
            language=told.language,
            version=told.version,
            address=told.address,
            subscriptions=dict(told.subscriptions),
        )
        sessions = self._held.setdefault(key, [])
        for held in sessions:
            if held.gateway is gateway and held.session == told.session:
                before, held.member = held.member, member
                self._show(key, before)
                return
        sessions.append(_Held(gateway, told.session, next(self._ages), member))
        gateway.sessions[told.session] = key
        self._show(key)

    def _forget(self, gateway: GatewayLease, sessions: Iterable[int]) -> None:
        for session in sessions:
            key = gateway.sessions.pop(session, None)
            if key is None:
                continue
            held = self._held[key]
            ended = next(one for one in held if one.gateway is gateway and one.session == session)
            held.remove(ended)
            if not held:
                del self._held[key]
            self._show(key, ended.member)

    def _show(self, key: Key, ended: Member | None = None) -> None:
        """Have `Sessions` know the session that counts now. `ended`: one that does not any more."""
        held = self._held.get(key)
        if held:
            newest = max(held, key=lambda one: one.rank).member
            if self._sessions.get(key[0], key[2], producer=key[1]) is not newest:
                self._sessions.register(newest)
        elif ended is not None:
            self._sessions.unregister(ended)

    def _signs_of_life(self) -> None:
        for held in self._held.values():
            newest = max(held, key=lambda one: one.rank)
            if newest.gateway.ask is not None:
                self._sessions.heard_of(newest.member)
        self._watching = bool(self._gateways)
        if self._watching:
            self._timers.call_later(SIGN_OF_LIFE_SECONDS, self._signs_of_life)
