"""What delivery says, as messages of delivery.proto."""

from collections.abc import Iterable

from tandemmq.common.errors import TandemError
from tandemmq.delivery.v1 import delivery_pb2
from tandemmq.store.delivery.members.sessions import CheckTransaction, Command, GroupChanged, OffsetsReset
from tandemmq.store.delivery.port import Batch, Outcome
from tandemmq.store.format.record import decode_record
from tandemmq.store.fronts.native import answers
from tandemmq.store.v1 import message_pb2


def received(batch: Batch, form: message_pb2.RecordForm.ValueType) -> delivery_pb2.ReceiveResponse:
    """The answer to a receive."""
    response = delivery_pb2.ReceiveResponse()
    add = response.messages.add
    for one in batch.messages:
        message = add(
            topic=one.topic, delivery_number=one.number, handle=one.handle, invisible_ms=max(0, one.invisible_ms)
        )
        if form == message_pb2.DECODED:
            message.message.CopyFrom(answers.stored_message(decode_record(one.record, verify=False)))
        else:
            message.record = one.record
    return response


def outcomes(given: Iterable[Outcome]) -> Iterable[delivery_pb2.Outcome]:
    """What became of handles."""
    return (outcome(one.error) for one in given)


def outcome(error: TandemError | None, handle: str = "") -> delivery_pb2.Outcome:
    """What became of one handle; `handle` is the one that counts from now on."""
    if error is None:
        return delivery_pb2.Outcome(handle=handle)
    return delivery_pb2.Outcome(refusal=answers.refusal(error))


def command(asked: Command) -> delivery_pb2.AttendResponse:
    """What a client is asked."""
    if isinstance(asked, CheckTransaction):
        return delivery_pb2.AttendResponse(
            check_transaction=delivery_pb2.CheckTransaction(
                group=asked.group,
                topic=asked.topic,
                transaction_id=asked.transaction_id,
                handle=asked.handle,
                record=asked.record,
            )
        )
    if isinstance(asked, GroupChanged):
        return delivery_pb2.AttendResponse(group_changed=delivery_pb2.GroupChanged(group=asked.group))
    assert isinstance(asked, OffsetsReset), "clients of this contract are not asked by operators"
    return delivery_pb2.AttendResponse(offsets_reset=delivery_pb2.OffsetsReset(group=asked.group, topic=asked.topic))
