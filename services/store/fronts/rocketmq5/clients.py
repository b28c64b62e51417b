"""Clients: which clients are there, with their settings and the stream on which they can be asked.

A client is known by its id and namespace. Every call works without its settings: after a restart of the store some
clients say them only minutes later (rule 23).
"""

from collections import OrderedDict
from dataclasses import dataclass, field

from tandemmq.rocketmq5.v2 import resources_pb2 as pb
from tandemmq.rocketmq5.v2 import settings_pb2
from tandemmq.store.delivery.members.member_questions import MemberAnswer
from tandemmq.store.delivery.members.sessions import Member, Peer, Sessions
from tandemmq.store.fronts.rocketmq5.caller import Caller

PROTOCOL = "rocketmq5"
MOST_CLIENTS = 100_000
"""Clients that are remembered; then those that were silent longest are forgotten, until they say their settings."""

CONSUMERS = (pb.PUSH_CONSUMER, pb.SIMPLE_CONSUMER, pb.PULL_CONSUMER, pb.LITE_PUSH_CONSUMER, pb.LITE_SIMPLE_CONSUMER)

Key = tuple[str, str]


@dataclass(slots=True)
class KnownClient:
    """One client."""

    client_id: str
    namespace: str
    settings: settings_pb2.Settings | None = None
    peer: Peer | None = None
    """Its newest stream."""
    members: dict[tuple[str, bool], Member] = field(default_factory=dict)
    """By group, and whether it is a producer of it."""


class Clients:
    """All clients of this front; their members are told to `Sessions`."""

    def __init__(self, sessions: Sessions) -> None:
        self._sessions = sessions
        self._known: OrderedDict[Key, KnownClient] = OrderedDict()

    def get(self, caller: Caller) -> KnownClient | None:
        """A client, if anything is known of it."""
        return self._known.get((caller.namespace, caller.client_id))

    def settings(self, caller: Caller) -> settings_pb2.Settings | None:
        """What a client has said of itself."""
        known = self.get(caller)
        return known.settings if known is not None else None

    def of(self, caller: Caller) -> KnownClient:
        """A client, remembered from now on."""
        key = (caller.namespace, caller.client_id)
        known = self._known.get(key)
        if known is None:
            known = self._known[key] = KnownClient(caller.client_id, caller.namespace)
            while len(self._known) > MOST_CLIENTS:
                self._forget(next(iter(self._known)))
        self._known.move_to_end(key)
        return known

    def member(
        self,
        caller: Caller,
        group: str,
        *,
        producer: bool,
        subscriptions: dict[str, str] | None = None,
    ) -> None:
        """A client is there as a member of a group. Without `subscriptions` those it had before count."""
        client = self.of(caller)
        before = client.members.get((group, producer))
        wanted = subscriptions if subscriptions is not None else (before.subscriptions if before else {})
        if (
            before is not None
            and before.peer is client.peer
            and before.subscriptions == wanted
            and self._sessions.heard_of(before)
        ):
            return
        agent = client.settings.user_agent if client.settings is not None else None
        language = pb.Language.Name(agent.language) if agent is not None and agent.language in _LANGUAGES else ""
        member = Member(
            client_id=caller.client_id,
            group=group,
            peer=client.peer,
            producer=producer,
            protocol=PROTOCOL,
            language=language or caller.language,
            version=(agent.version if agent is not None else "") or caller.version,
            address=str(caller.peer),
            subscriptions=wanted,
        )
        client.members[group, producer] = member
        self._sessions.register(member)

    def heard_of(self, caller: Caller) -> None:
        """A sign of life: all that the client is a member of goes on."""
        client = self.get(caller)
        for group, producer in list(client.members) if client is not None else ():
            self.member(caller, group, producer=producer)

    def stream(self, caller: Caller, peer: Peer) -> None:
        """A client has a new stream; it takes the place of an older one."""
        self.of(caller).peer = peer

    def stream_ended(self, caller: Caller, peer: Peer) -> None:
        """A stream ended: nothing can be asked on it. The client may live on, by its heartbeats."""
        client = self.get(caller)
        if client is not None and client.peer is peer:
            client.peer = None
            for member in client.members.values():
                if member.peer is peer:
                    self._sessions.disconnected(member)

    def answered(self, nonce: str, answer: MemberAnswer) -> None:
        """A client has answered what an operator has asked."""
        self._sessions.answered(nonce, answer)

    def gone(self, caller: Caller) -> list[str]:
        """A client ends; gives the groups in which it consumed."""
        client = self.get(caller)
        if client is None:
            return []
        groups = [group for group, producer in client.members if not producer]
        self._forget((caller.namespace, caller.client_id))
        return groups

    def _forget(self, key: Key) -> None:
        client = self._known.pop(key)
        for member in client.members.values():
            self._sessions.unregister(member)

    def __len__(self) -> int:
        return len(self._known)


_LANGUAGES = frozenset(pb.Language.values())
