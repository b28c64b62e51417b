"""What the broker says, as the link to a gateway says it; and the other way round."""

from collections.abc import Sequence

from tandemmq.broker.v1 import broker_pb2
from tandemmq.common.errors import TandemError
from tandemmq.store.broker.errors import BadRequest
from tandemmq.store.broker.send import ANY_QUEUE, NewMessage
from tandemmq.store.delivery.members.member_questions import MemberQuestion, TryMessage
from tandemmq.store.delivery.members.sessions import CheckTransaction
from tandemmq.store.delivery.port import Batch, Ending, FilterKind, Outcome, Subscription, Wish
from tandemmq.store.format import properties
from tandemmq.store.format.host import ANY_HOST, Host, IllegalHost
from tandemmq.store.fronts.broker_port import StoredMessage

MOST_TEXT = 1_000
"""Characters of a refusal's message, and of its remedy."""


def refusal(error: TandemError) -> broker_pb2.Refusal:
    """An error."""
    return broker_pb2.Refusal(
        kind=error.kind.name, message=error.message[:MOST_TEXT], remedy=(error.remedy or "")[:MOST_TEXT]
    )


def stored(given: StoredMessage) -> broker_pb2.Stored:
    """What became of a message."""
    return broker_pb2.Stored(
        message_id=given.message_id,
        transaction_id=given.transaction_id,
        offset=given.offset,
        recall_handle=given.recall_handle,
        status=given.status.name,
    )


def given(batch: Batch) -> broker_pb2.Given:
    """Messages that are given out."""
    messages = [
        broker_pb2.GivenMessage(
            topic=one.topic,
            record=one.record,
            number=one.number,
            handle=one.handle,
            invisible_ms=one.invisible_ms,
        )
        for one in batch.messages
    ]
    return broker_pb2.Given(messages=messages, bytes=sum(len(one.record) for one in batch.messages))


def outcomes(each: Sequence[Outcome]) -> broker_pb2.Outcomes:
    """What became of handles."""
    return broker_pb2.Outcomes(
        outcomes=[
            broker_pb2.Outcome(handle=one.handle, refusal=None if one.error is None else refusal(one.error))
            for one in each
        ]
    )


def check(session: int, command: CheckTransaction) -> broker_pb2.Check:
    """A question to a producer."""
    return broker_pb2.Check(
        session=session,
        group=command.group,
        topic=command.topic,
        transaction_id=command.transaction_id,
        handle=command.handle,
        record=command.record,
    )


def new_message(message: broker_pb2.Message) -> NewMessage:
    """A message to store."""
    return NewMessage(
        topic=message.topic,
        born_host=host(message.born_host),
        body=message.body,
        properties=properties.decode(message.properties),
        queue_id=ANY_QUEUE,
        sys_flag=message.sys_flag,
        born_timestamp=message.born_timestamp,
        repeatable=True,  # gateways serve RocketMQ 5 clients only
    )


def wish(asked: broker_pb2.Receive) -> Wish:
    """A receive."""
    return Wish(
        group=asked.group,
        topic=asked.topic,
        queue=asked.queue,
        subscription=Subscription(asked.expression, FilterKind.SQL if asked.sql else FilterKind.TAG),
        most=asked.most,
        most_bytes=asked.most_bytes,
        invisible_ms=asked.invisible_ms,
        wait_ms=asked.wait_ms,
        renew=asked.renew,
        client_id=asked.client_id,
        attempt_id=asked.attempt_id,
    )


def ending(text: str) -> Ending:
    """How a transaction ends. Raises BadRequest."""
    try:
        return Ending(text)
    except ValueError:
        raise BadRequest(f"A transaction cannot end with {text!r}.") from None


def host(text: str) -> Host:
    """An address; ANY_HOST for what is none."""
    try:
        return Host.parse(text)
    except IllegalHost:
        return ANY_HOST


def ask(session: int, asked: MemberQuestion) -> broker_pb2.AskMember:
    """An operator's question to a client."""
    if isinstance(asked, TryMessage):
        return broker_pb2.AskMember(session=session, nonce=asked.nonce, topic=asked.topic, record=asked.record)
    return broker_pb2.AskMember(session=session, nonce=asked.nonce)
