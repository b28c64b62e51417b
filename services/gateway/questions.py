"""What the front asks, as questions of the link; and the answers, as the front knows them. No I/O."""

from typing import NamedTuple

from tandemmq.broker.v1 import broker_pb2
from tandemmq.common.documents import java_json
from tandemmq.common.errors import TandemError
from tandemmq.gateway.errors import refusal_of
from tandemmq.store.broker.group_transfer import PutStatus
from tandemmq.store.broker.send import NewMessage
from tandemmq.store.delivery.members.member_questions import MemberQuestion, ShowThreads, TryMessage
from tandemmq.store.delivery.members.sessions import CheckTransaction, Member
from tandemmq.store.delivery.port import FilterKind, GivenMessage, Outcome, Wish
from tandemmq.store.format import properties
from tandemmq.store.fronts.broker_port import StoredMessage

Question = broker_pb2.Question
Answer = broker_pb2.Answer


class GivenAnswer(NamedTuple):
    """Messages that a store has given out."""

    messages: tuple[GivenMessage, ...]
    size: int
    """Bytes that they take of the credit."""


def send(message: NewMessage) -> Question:
    """Store a message."""
    return Question(
        send=broker_pb2.Message(
            topic=message.topic,
            born_host=str(message.born_host),
            body=message.body,
            properties=properties.encode(message.properties),
            sys_flag=message.sys_flag,
            born_timestamp=message.born_timestamp,
        )
    )


def receive(wish: Wish, wait_ms: int) -> Question:
    """Give messages out, within `wait_ms` from now."""
    return Question(
        receive=broker_pb2.Receive(
            group=wish.group,
            topic=wish.topic,
            queue=wish.queue,
            expression=wish.subscription.expression,
            sql=wish.subscription.kind is FilterKind.SQL,
            most=wish.most,
            most_bytes=wish.most_bytes,
            invisible_ms=wish.invisible_ms,
            wait_ms=wait_ms,
            renew=wish.renew,
            client_id=wish.client_id,
            attempt_id=wish.attempt_id,
        )
    )


def member(session: int, there: Member) -> broker_pb2.Member:
    """A client in one of its groups."""
    return broker_pb2.Member(
        session=session,
        client_id=there.client_id,
        group=there.group,
        producer=there.producer,
        protocol=there.protocol,
        language=there.language,
        version=there.version,
        address=there.address,
        subscriptions=there.subscriptions,
        asked=there.peer is not None,
    )


def refusal(given: broker_pb2.Refusal) -> TandemError:
    """A broker's refusal."""
    return refusal_of(given.kind, given.message, given.remedy)


def stored(given: broker_pb2.Stored) -> StoredMessage:
    """What became of a message."""
    return StoredMessage(
        given.message_id, given.transaction_id, given.offset, given.recall_handle, PutStatus[given.status]
    )


def given(answer: broker_pb2.Given) -> GivenAnswer:
    """Messages that are given out."""
    messages = (
        GivenMessage(one.topic, one.record, one.number, one.handle, one.invisible_ms) for one in answer.messages
    )
    return GivenAnswer(tuple(messages), answer.bytes)


def outcomes(answer: broker_pb2.Outcomes) -> list[Outcome]:
    """What became of handles."""
    return [Outcome(one.handle, refusal(one.refusal) if one.HasField("refusal") else None) for one in answer.outcomes]


def check(asked: broker_pb2.Check) -> CheckTransaction:
    """A question to a producer."""
    return CheckTransaction(asked.group, asked.topic, asked.transaction_id, asked.handle, asked.record)


def entry(name: str, json: dict[str, object]) -> broker_pb2.Entry:
    """A topic or group that is to be made."""
    return broker_pb2.Entry(name=name, json=java_json.dumps(json))


def ask(asked: broker_pb2.AskMember, nonce: str) -> MemberQuestion:
    """An operator's question to a client, under another nonce."""
    return TryMessage(nonce, asked.topic, asked.record) if asked.topic else ShowThreads(nonce)
