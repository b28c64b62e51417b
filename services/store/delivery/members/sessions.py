"""The clients that are there, and what the broker may ask of them.

Fronts register their connections as peers: a telemetry stream, a remoting connection, a native `Attend` stream.
Delivery asks without knowing the protocol.

A client is gone when its front says so, or when nothing was heard of it for two minutes. It may be a producer and a
consumer of the same group, which are two members.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

from tandemmq.common.log_output import get_log
from tandemmq.common.slices import in_turns
from tandemmq.common.timers import Timers
from tandemmq.store.delivery.errors import NoSuchMember
from tandemmq.store.delivery.members.member_questions import (
    ANSWER_SECONDS,
    MemberAnswer,
    MemberQuestion,
    MemberQuestions,
)

log = get_log(__name__)

_MOST_TOLD = 5
"""Clients that are told one by one where many are gone at the same time."""

SILENCE_SECONDS = 120.0
"""A member of which nothing was heard for so long is gone (RocketMQ: ``CHANNEL_EXPIRED_TIMEOUT``)."""


class CheckTransaction(NamedTuple):
    """Ask a producer how a transaction has ended. It answers by ending it."""

    group: str
    topic: str
    transaction_id: str
    handle: str
    """What `end_transaction` is to be given back."""
    record: bytes
    """The half message as it lies in the log; its topic and queue are in REAL_TOPIC and REAL_QID."""


class GroupChanged(NamedTuple):
    """Members of the group came or went: classic consumers share out the queues anew."""

    group: str


class OffsetsReset(NamedTuple):
    """Offsets of the group in a topic were set by an operator; what a client holds of it is called back."""

    group: str
    topic: str
    queues: tuple[int, ...]


Command = CheckTransaction | GroupChanged | OffsetsReset | MemberQuestion


class Peer(Protocol):
    """A client's connection that takes commands."""

    def ask(self, command: Command) -> bool:
        """Put a command on its way; False where it takes none now: its queue is full, or it is gone. Never blocks."""
        ...


@dataclass(slots=True)
class Member:
    """One client in its group; a producer group has members too."""

    client_id: str
    group: str
    peer: Peer | None = None
    producer: bool = False
    protocol: str = ""
    """native, rocketmq5 or remoting."""
    language: str = ""
    version: str = ""
    address: str = ""
    subscriptions: dict[str, str] = field(default_factory=dict)
    """Topic -> filter expression, as the client said it."""
    last_seen: float = 0.0
    """By `Timers.time`."""


Changed = Callable[[Member], None]
"""Hears of a member that came, went, or subscribes to something else now. It must not raise."""

Key = tuple[str, bool, str]
"""Group, whether it is a producer, client id."""


def _key(member: Member) -> Key:
    return member.group, member.producer, member.client_id


class Sessions:
    """All members of all groups, with those to be told when they come and go."""

    def __init__(self, timers: Timers, silence_seconds: float = SILENCE_SECONDS) -> None:
        """Members of which nothing is heard for so many seconds are gone, by the clock of `timers`."""
        self.timers = timers
        self._silence = silence_seconds
        self._members: dict[Key, Member] = {}  # in the order in which they were last heard of
        self._groups: dict[str, dict[Key, Member]] = {}
        self._turns: dict[str, int] = {}
        self._listeners: list[Changed] = []
        self._waiting = False
        self._lost = 0
        self._questions = MemberQuestions(timers)

    def listen(self, listener: Changed) -> None:
        """Tell `listener` from now on which members have changed."""
        self._listeners.append(listener)

    # -- coming and going -------------------------------------------------------------------------------------------

    def register(self, member: Member) -> None:
        """A member is there. It takes the place of one with the same id: a client that has come back."""
        key = _key(member)
        before = self._members.pop(key, None)
        member.last_seen = self.timers.time()
        self._members[key] = member
        self._groups.setdefault(member.group, {})[key] = member
        self._watch()
        if before is None or before.subscriptions != member.subscriptions:
            self._tell(member)

    def unregister(self, member: Member) -> None:
        """A member ends. Nothing where another has taken its place: its old connection ends after its new one began."""
        if self._members.get(_key(member)) is member:
            self._remove(member)

    def disconnected(self, member: Member) -> None:
        """The connection of a member ended: it cannot be asked, and may live on."""
        member.peer = None

    def heard_of(self, member: Member) -> bool:
        """A heartbeat, or anything else of a member; False if it is no longer there and has to be registered anew."""
        key = _key(member)
        if self._members.get(key) is not member:
            return False
        member.last_seen = self.timers.time()
        self._members[key] = self._members.pop(key)
        return True

    def _remove(self, member: Member) -> None:
        key, group = _key(member), self._groups[member.group]
        del self._members[key], group[key]
        if not group:
            del self._groups[member.group]
            self._turns.pop(member.group, None)
        self._tell(member)

    def _tell(self, member: Member) -> None:
        for listener in list(self._listeners):
            listener(member)

    def _watch(self) -> None:
        """Come back when the one that has been silent for longest would be gone."""
        if self._waiting or not self._members:
            return
        self._waiting = True
        longest = next(iter(self._members.values()))
        self.timers.call_at(longest.last_seen + self._silence, self._look)

    def _look(self) -> None:
        self._lost = 0
        in_turns(self.timers, self._silent(self.timers.time() - self._silence), self._lose, self._looked)

    def _silent(self, limit: float) -> Iterator[Member]:
        """The members of which nothing was heard since then, those that are silent for longest first."""
        while self._members:
            longest = next(iter(self._members.values()))
            if longest.last_seen > limit:
                return
            yield longest

    def _lose(self, member: Member) -> None:
        self._lost += 1
        if self._lost <= _MOST_TOLD:
            log.warning(
                "nothing was heard of a client for long: it counts as gone",
                group=member.group, client=member.client_id, address=member.address, seconds=self._silence,
            )  # fmt: skip
        self._remove(member)

    def _looked(self) -> None:
        if self._lost > _MOST_TOLD:
            log.warning("nothing was heard of many clients for long: they count as gone", clients=self._lost)
        self._waiting = False
        self._watch()

    # -- who is there -----------------------------------------------------------------------------------------------

    def count(self) -> int:
        """How many members all groups have together."""
        return len(self._members)

    def groups(self) -> list[str]:
        """Names of all groups that have members, in no particular order."""
        return list(self._groups)

    def all(self) -> list[Member]:
        """All members of all groups. May be called on any thread."""
        return list(self._members.values())

    def members(self, group: str) -> list[Member]:
        """All members of a group, producers too, in the order in which they first came."""
        return list(self._groups.get(group, {}).values())

    def get(self, group: str, client_id: str, *, producer: bool = False) -> Member | None:
        """One member, or None if it is not there."""
        return self._members.get((group, producer, client_id))

    def producers(self, group: str) -> list[Member]:
        """The members of a group that send."""
        return [one for one in self.members(group) if one.producer]

    def consumers(self, group: str) -> list[Member]:
        """The members of a group that receive."""
        return [one for one in self.members(group) if not one.producer]

    # -- asking -----------------------------------------------------------------------------------------------------

    def ask_producer(self, group: str, command: Command) -> bool:
        """Ask one producer of the group, each in its turn; False if there is none that takes the command now."""
        return any(member.peer is not None and member.peer.ask(command) for member in self._in_turn(group))

    def ask_consumers(self, group: str, command: Command) -> int:
        """Tell every consumer of the group; gives how many took the command."""
        return sum(member.peer is not None and member.peer.ask(command) for member in self.consumers(group))

    async def ask_member(
        self, group: str, client_id: str, make: Callable[[str], MemberQuestion], seconds: float = ANSWER_SECONDS
    ) -> MemberAnswer:
        """Ask one consumer of the group. `make` makes the question of its nonce.

        Raises NoSuchMember, MemberCannotAnswer, MemberSilent.
        """
        member = self.get(group, client_id)
        if member is None:
            raise NoSuchMember(f"There is no consumer {client_id} in group {group}.")
        peer = member.peer
        return await self._questions.ask(lambda asked: peer is not None and peer.ask(asked), make, seconds)

    def answered(self, nonce: str, answer: MemberAnswer) -> None:
        """A client has answered what it was asked."""
        self._questions.answered(nonce, answer)

    def _in_turn(self, group: str) -> Iterator[Member]:
        """Each producer of the group once, beginning after the one with which the last call began."""
        there = self.producers(group)
        if there:
            first = self._turns.get(group, 0) % len(there)
            self._turns[group] = first + 1
            yield from there[first:] + there[:first]
