"""Clients: who is at the other ends of the connections, and what the broker tells them of its own accord.

A client says what it is by heartbeats: producer of some groups, consumer in others. All of them share its connection,
and end with it.
"""

from collections.abc import Callable, Mapping
from typing import NamedTuple

from tandemmq.common.net.remoting.connection import RemotingConnection
from tandemmq.common.slices import in_turns
from tandemmq.common.timers import Timers
from tandemmq.common.wire.remoting.command import Body
from tandemmq.common.wire.remoting.command import Command as Frame
from tandemmq.common.wire.remoting.versions import V3_0_7_SNAPSHOT
from tandemmq.store.delivery.journal.facts import Place
from tandemmq.store.delivery.members.groups import GroupConfig
from tandemmq.store.delivery.members.sessions import Command, GroupChanged, Member, Sessions
from tandemmq.store.delivery.port import Subscription

PROTOCOL = "remoting"
PUSH = "CONSUME_PASSIVELY"
"""The consume type of consumers that pull by themselves, and call their program with what comes."""
PULL = "CONSUME_ACTIVELY"
"""The consume type of consumers whose program pulls."""
_TAKE_RESETS = frozenset({"JAVA", "CPP", "GO"})
"""Languages whose push consumers take RESET_CONSUMER_CLIENT_OFFSET."""
_MOST_POSITIONS = 10_000
"""Of one client."""

Groups = Callable[[str], GroupConfig | None]


class Subscribed(NamedTuple):
    """What a heartbeat says of one topic (RocketMQ: ``SubscriptionData``)."""

    subscription: Subscription
    version: int
    given: dict[str, object]
    """As the client wrote it."""


class Consumes(NamedTuple):
    """What a heartbeat says of one group (RocketMQ: ``ConsumerData``)."""

    group: str
    consume_type: str
    """PUSH, PULL."""
    message_model: str
    """CLUSTERING, BROADCASTING."""
    from_where: str
    """Where it begins without a position, as the client sees to itself."""
    topics: dict[str, Subscribed]


class Client:
    """The program at the other end of a connection. A `Peer`."""

    def __init__(self, connection: RemotingConnection, told: "Callable[[Client, Command], bool]") -> None:
        self.connection = connection
        self.client_id = ""
        self.language = ""
        self.version = 0
        self.members: dict[tuple[str, bool], Member] = {}
        """By group, and whether it is a producer of it."""
        self.consumes: dict[str, Consumes] = {}
        """By group, as the newest heartbeat has it."""
        self._positions: dict[Place, int] = {}
        self._told = told

    def ask(self, command: Command) -> bool:
        """See `Peer.ask`."""
        return self._told(self, command)

    @property
    def takes_more(self) -> bool:
        """Whether it is there, and reads what is sent to it."""
        return not self.connection.closed and not self.connection.stalled

    def knows_position(self, place: Place, offset: int) -> None:
        """It was told that a group stands there, or has said so itself."""
        if len(self._positions) >= _MOST_POSITIONS:
            self._positions.clear()
        self._positions[place] = offset

    def has_reached(self, place: Place, offset: int) -> bool:
        """Whether it knows that the group stands there: then what it commits below is a way back from there."""
        return self._positions.get(place, -1) >= offset

    def takes_resets(self, group: str) -> bool:
        """Whether it can be told new positions of a group. Others hear of them as they pull."""
        said = self.consumes.get(group)
        can = self.language in _TAKE_RESETS and self.version >= V3_0_7_SNAPSHOT
        return can and said is not None and said.consume_type == PUSH

    def notify(self, code: int, fields: Mapping[str, str], body: Body = b"") -> bool:
        """Tell it something that it does not answer; False where it takes nothing now."""
        if not self.takes_more:
            return False
        self.connection.tell(Frame(code, fields=fields, body=body))
        return True


class RemotingClients:
    """All clients of this front; their members are told to `Sessions`."""

    def __init__(self, sessions: Sessions, groups: Groups, timers: Timers) -> None:
        self.sessions = sessions
        self._groups = groups
        self.tell: Callable[[Client, Command], bool] = lambda client, command: client.takes_more
        """How commands are told; see `commands`."""
        self._consumes: dict[str, dict[Client, Consumes]] = {}
        self._ids: dict[str, Client] = {}
        self._clients: dict[RemotingConnection, Client] = {}
        self._timers = timers
        self._changed_groups: dict[str, None] = {}
        sessions.listen(self._changed)

    def of(self, connection: RemotingConnection) -> Client:
        """The client of a connection, remembered from now on."""
        client = self._clients.get(connection)
        if client is None:
            client = self._clients[connection] = Client(connection, self._ask)
        return client

    def takes_resets(self, connection: RemotingConnection, group: str) -> bool:
        """The same of the client of a connection."""
        client = self._clients.get(connection)
        return client is not None and client.takes_resets(group)

    def _ask(self, client: Client, command: Command) -> bool:
        return self.tell(client, command)

    # -- coming and going -------------------------------------------------------------------------------------------

    def named(self, client: Client, client_id: str, language: str, version: int) -> None:
        """A client has said who it is. Under another id than before it is another: what it was ends."""
        if client.client_id != client_id:
            self._leave(client)
        client.client_id, client.language, client.version = client_id, language, version
        self._ids[client_id] = client

    def produces(self, client: Client, group: str) -> None:
        """A client is there as a producer."""
        self._member(client, group, producer=True, subscriptions={})

    def consume(self, client: Client, said: Consumes) -> None:
        """A client is there as a consumer; what it says counts from now on."""
        client.consumes[said.group] = said
        of_group = self._consumes.setdefault(said.group, {})
        of_group.pop(client, None)
        of_group[client] = said  # the newest last
        subscriptions = {topic: one.subscription.expression for topic, one in said.topics.items()}
        self._member(client, said.group, producer=False, subscriptions=subscriptions)

    def _member(self, client: Client, group: str, *, producer: bool, subscriptions: dict[str, str]) -> None:
        before = client.members.get((group, producer))
        if before is not None and before.subscriptions == subscriptions and self.sessions.heard_of(before):
            return
        member = Member(
            client_id=client.client_id,
            group=group,
            peer=client,
            producer=producer,
            protocol=PROTOCOL,
            language=client.language,
            version=str(client.version),
            address=client.connection.peer,
            subscriptions=subscriptions,
        )
        client.members[group, producer] = member
        self.sessions.register(member)

    def ended(self, client: Client, group: str, *, producer: bool) -> None:
        """A client is no longer there as that."""
        if not producer:
            client.consumes.pop(group, None)
            self._forget(client, group)
        member = client.members.pop((group, producer), None)
        if member is not None:
            self.sessions.unregister(member)

    def lost(self, connection: RemotingConnection) -> None:
        """A connection has ended, and all that its client was."""
        client = self._clients.pop(connection, None)
        if client is not None:
            self._leave(client)

    def _leave(self, client: Client) -> None:
        for group, producer in list(client.members):
            self.ended(client, group, producer=producer)
        if self._ids.get(client.client_id) is client:
            del self._ids[client.client_id]

    def _forget(self, client: Client, group: str) -> None:
        of_group = self._consumes.get(group)
        if of_group is not None:
            of_group.pop(client, None)
            if not of_group:
                del self._consumes[group]

    # -- who is there -----------------------------------------------------------------------------------------------

    def consumer_ids(self, group: str) -> list[str]:
        """Ids of the classic consumers of a group: they share out the queues among themselves."""
        return sorted(one.client_id for one in self.sessions.consumers(group) if one.protocol == PROTOCOL)

    def consumers(self, group: str) -> list[Client]:
        """The classic consumers of a group."""
        found = map(self._found, self.sessions.consumers(group))
        return [client for client in found if client is not None]

    def consumer(self, group: str, client_id: str) -> Client | None:
        """A classic consumer, if it is there."""
        return self._found(self.sessions.get(group, client_id))

    def requester(self, client_id: str) -> Client | None:
        """A client by its id: answers to its requests go there."""
        return self._ids.get(client_id)

    def consumes(self, group: str) -> Consumes | None:
        """What the newest heartbeat of a group says of it."""
        of_group = self._consumes.get(group)
        return next(reversed(of_group.values())) if of_group else None

    @classmethod
    def pulls(cls, member: Member) -> bool:
        """Whether a consumer is a classic client whose program pulls, and says where it stands."""
        client = cls._found(member)
        said = None if client is None else client.consumes.get(member.group)
        return said is not None and said.consume_type == PULL

    @staticmethod
    def _found(member: Member | None) -> Client | None:
        return member.peer if member is not None and isinstance(member.peer, Client) else None

    # -- changes ----------------------------------------------------------------------------------------------------

    def _changed(self, changed: Member) -> None:
        """Consumers share out the queues anew when one of them comes or goes."""
        group = changed.group
        config = self._groups(group)
        if config is not None and config.other.get("notifyConsumerIdsChangedEnable") is False:
            return
        if not self._changed_groups:
            self._timers.call_soon(self._tell_changes)
        self._changed_groups[group] = None

    def _tell_changes(self) -> None:
        """Tell each consumer once, however many have changed meanwhile."""
        groups, self._changed_groups = self._changed_groups, {}
        members = (member for group in groups for member in self.sessions.consumers(group))
        in_turns(self._timers, members, self._tell_change, _nothing)

    @staticmethod
    def _tell_change(member: Member) -> None:
        if isinstance(member.peer, Client):
            member.peer.ask(GroupChanged(member.group))


def _nothing() -> None:
    """All have been told."""
