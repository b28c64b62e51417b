"""The clients of this gateway, told to all brokers: what has changed of them, and all of them on a new link."""

import asyncio
import itertools
from collections.abc import Collection

from tandemmq.broker.v1 import broker_pb2
from tandemmq.common.timers import Timers
from tandemmq.gateway import questions
from tandemmq.gateway.questions import Question, member
from tandemmq.gateway.remote_broker import RemoteBroker
from tandemmq.store.delivery.members.member_questions import MOST_TEXT, MemberAnswer
from tandemmq.store.delivery.members.sessions import Command, Member, Sessions


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
        self._dirty: dict[int, Member] = {}
        """By identity: those that came, went or can no longer be asked, and were not told yet."""
        self.listen(self._note)

    # -- hearing ----------------------------------------------------------------------------------------------------

    def register(self, member: Member) -> None:
        """See `Sessions`."""
        before = self.get(member.group, member.client_id, producer=member.producer)
        super().register(member)
        if before is not None:
            self._note(before)
        self._note(member)

    def disconnected(self, member: Member) -> None:
        """See `Sessions`."""
        super().disconnected(member)
        self._note(member)

    def _note(self, member: Member) -> None:
        if not self._dirty:
            asyncio.get_running_loop().call_soon(self.flush)
        self._dirty[id(member)] = member

    # -- telling ----------------------------------------------------------------------------------------------------

    def flush(self) -> None:
        """Tell all brokers what has changed."""
        dirty, self._dirty = self._dirty, {}
        there: list[broker_pb2.Member] = []
        gone: list[int] = []
        for identity, one in dirty.items():
            number = self._of.get(identity, 0)
            if self.get(one.group, one.client_id, producer=one.producer) is not one:
                if number:
                    del self._of[identity], self._there[number]
                    gone.append(number)
            elif not number or self._there[number][1] is not (one.peer is not None):
                number = number or next(self._numbers)
                self._of[identity] = number
                self._there[number] = one, one.peer is not None
                there.append(member(number, one))
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
