"""The clients of this gateway, told to all brokers: what has changed of them, and all of them on a new link."""

import asyncio
import itertools
from collections.abc import Collection

from tandemmq.broker.v1 import broker_pb2
from tandemmq.gateway import questions
from tandemmq.gateway.questions import Question, member
from tandemmq.gateway.remote_broker import RemoteBroker
from tandemmq.store.delivery.member_questions import MOST_TEXT, MemberAnswer
from tandemmq.store.delivery.sessions import Command, Member, Sessions
from tandemmq.store.log.edges.timers import Timers

_MOST_AT_ONCE = 1_000
"""Members in one question."""


class GatewaySessions(Sessions):
    """`Sessions` whose members are those of all brokers too. Each gets a number when it comes."""

    def __init__(self, timers: Timers, brokers: Collection[RemoteBroker]) -> None:
        super().__init__(timers)
        self._brokers = brokers
        self._numbers = itertools.count(1)
        self._there: dict[int, tuple[Member, bool]] = {}
        """By number: members as they were told, and whether they could be asked."""
        self._of: dict[int, int] = {}
        """By the identity of a member: its number."""
        self._dirty: set[str] = set()
        self._groups_of: dict[str, set[int]] = {}
        self.listen(self._note)

    # -- hearing ----------------------------------------------------------------------------------------------------

    def register(self, member: Member) -> None:
        """See `Sessions`."""
        super().register(member)
        self._note(member.group)

    def disconnected(self, member: Member) -> None:
        """See `Sessions`."""
        super().disconnected(member)
        self._note(member.group)

    def _note(self, group: str) -> None:
        if not self._dirty:
            asyncio.get_running_loop().call_soon(self.flush)
        self._dirty.add(group)

    # -- telling ----------------------------------------------------------------------------------------------------

    def flush(self) -> None:
        """Tell all brokers what has changed."""
        dirty, self._dirty = self._dirty, set()
        there: list[broker_pb2.Member] = []
        gone: list[int] = []
        for group in dirty:
            now = {id(one): one for one in self.members(group)}
            known = self._groups_of.setdefault(group, set())
            for number in [number for number in known if id(self._there[number][0]) not in now]:
                known.discard(number)
                del self._of[id(self._there.pop(number)[0])]
                gone.append(number)
            for identity, one in now.items():
                number = self._of.get(identity, 0)
                if number and self._there[number][1] is (one.peer is not None):
                    continue
                number = number or next(self._numbers)
                self._of[identity] = number
                self._there[number] = one, one.peer is not None
                known.add(number)
                there.append(member(number, one))
            if not known:
                del self._groups_of[group]
        if there or gone:
            for broker in self._brokers:
                broker.tell(Question(members=broker_pb2.Members(there=there, gone=gone)))

    def tell_all(self, broker: RemoteBroker) -> None:
        """Tell one broker of all members: it has a new link."""
        self.flush()
        everything = [member(number, one) for number, (one, _) in self._there.items()]
        broker.tell(Question(members=broker_pb2.Members(whole=True, there=everything)))

    # -- asking -----------------------------------------------------------------------------------------------------

    def ask(self, number: int, command: Command) -> bool:
        """Ask the client of a number; False where it is gone, or takes nothing."""
        found = self._there.get(number)
        return found is not None and found[0].peer is not None and found[0].peer.ask(command)

    def pass_on(self, broker: RemoteBroker, asked: broker_pb2.AskMember) -> None:
        """Ask a client what a broker wants to know; the nonce names the broker meanwhile."""
        if not self.ask(asked.session, questions.ask(asked, f"{asked.nonce}@{broker.name}")):
            _answer(broker, asked.nonce, MemberAnswer("NOT_FOUND", "The client has no stream at this gateway."))

    def answered(self, nonce: str, answer: MemberAnswer) -> None:
        """See `Sessions`."""
        own, _, name = nonce.partition("@")
        for broker in self._brokers:
            if broker.name == name:
                _answer(broker, own, answer)


def _answer(broker: RemoteBroker, nonce: str, answer: MemberAnswer) -> None:
    told = broker_pb2.MemberAnswer(nonce=nonce, code=answer.code, text=answer.text[:MOST_TEXT])
    broker.tell(Question(answered=told))
