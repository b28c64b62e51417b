"""A stored message as a consumer gets it."""

from google.protobuf.duration_pb2 import Duration
from google.protobuf.timestamp_pb2 import Timestamp

from tandemmq.rocketmq5.v2 import message_pb2
from tandemmq.rocketmq5.v2 import resources_pb2 as pb
from tandemmq.store.delivery.members.member_questions import TryMessage
from tandemmq.store.delivery.members.sessions import CheckTransaction
from tandemmq.store.delivery.port import GivenMessage
from tandemmq.store.format import properties as names
from tandemmq.store.format.message_id import encode_offset_id
from tandemmq.store.format.record import Record, decode_record
from tandemmq.store.fronts.rocketmq5 import body_digest
from tandemmq.store.fronts.rocketmq5.inflating import readable_body
from tandemmq.store.fronts.rocketmq5.sent_message import BORN_HOST, INTERNAL, TRACE_CONTEXT


async def given_message(given: GivenMessage, topic: pb.Resource, most_body: int, namespace: str) -> message_pb2.Message:
    """A message that is given out. `topic`: as the consumer asked for it; `most_body`: see `readable_body`.

    `namespace`: of the call, where that of the topic is empty.
    """
    record = decode_record(given.record, verify=False)
    message = await pulled_message(record, topic, most_body, namespace)
    system = message.system_properties
    system.receipt_handle = given.handle
    system.delivery_attempt = given.number
    system.invisible_duration.CopyFrom(
        Duration(seconds=given.invisible_ms // 1_000, nanos=given.invisible_ms % 1_000 * 1_000_000)
    )
    return message


async def pulled_message(record: Record, topic: pb.Resource, most_body: int, namespace: str) -> message_pb2.Message:
    """A message that was read by its offset: nothing of it is to be acknowledged. The rest as of `given_message`."""
    body, encoding = await readable_body(record, most_body)
    system = _system(record, encoding)
    if system.HasField("dead_letter_queue"):
        origin = system.dead_letter_queue
        origin.topic = _unwrapped(origin.topic, topic.resource_namespace or namespace).name
    system.body_digest.CopyFrom(await body_digest.made(body))
    own = {name: value for name, value in record.properties.items() if name not in INTERNAL}
    return message_pb2.Message(topic=topic, user_properties=own, system_properties=system, body=body)


async def checked_message(command: CheckTransaction, namespace: str, most_body: int) -> message_pb2.Message:
    """The half message of a transaction that its producer is asked about: as it was sent, without a receipt handle."""
    record = decode_record(command.record, verify=False)
    message = await pulled_message(record, _unwrapped(command.topic, namespace), most_body, namespace)
    system = message.system_properties
    system.delivery_attempt = 1
    system.queue_id = int(record.properties.get(names.REAL_QID) or 0)
    system.message_type = pb.TRANSACTION
    return message


async def tried_message(command: TryMessage, namespace: str, most_body: int) -> message_pb2.Message:
    """A message that a client is to consume once more, for a test; without a receipt handle."""
    record = decode_record(command.record, verify=False)
    message = await pulled_message(record, _unwrapped(command.topic, namespace), most_body, namespace)
    message.system_properties.delivery_attempt = 1
    return message


def _unwrapped(topic: str, namespace: str) -> pb.Resource:
    """The store's topic as a client of a namespace names it."""
    name = topic.removeprefix(f"{namespace}%") if namespace else topic
    return pb.Resource(resource_namespace=namespace, name=name)


def _system(record: Record, encoding: message_pb2.Encoding.ValueType) -> message_pb2.SystemProperties:
    given = record.properties
    system = message_pb2.SystemProperties(
        message_id=given.get(names.UNIQ_KEY) or encode_offset_id(record.store_host, record.physical_offset),
        keys=record.keys,
        body_encoding=encoding,
        message_type=_type(given),
        born_timestamp=_timestamp(record.born_timestamp),
        born_host=given.get(BORN_HOST) or str(record.born_host),
        store_timestamp=_timestamp(record.store_timestamp),
        store_host=str(record.store_host),
        queue_id=record.queue_id,
        queue_offset=record.queue_offset,
    )
    _add_optional(system, given)
    return system


def _add_optional(system: message_pb2.SystemProperties, given: dict[str, str]) -> None:
    """What is set only if the producer has set it."""
    if names.TAGS in given:
        system.tag = given[names.TAGS]
    if names.SHARDING_KEY in given:
        system.message_group = given[names.SHARDING_KEY]
    if TRACE_CONTEXT in given:
        system.trace_context = given[TRACE_CONTEXT]
    if (due := _number(given.get(names.TIMER_DELIVER_MS))) is not None:
        system.delivery_timestamp.CopyFrom(_timestamp(due))
    if (priority := _number(given.get(names.PRIORITY))) is not None and priority < 1 << 31:
        system.priority = priority
    if names.DLQ_ORIGIN_TOPIC in given:
        system.dead_letter_queue.topic = given[names.DLQ_ORIGIN_TOPIC]
        system.dead_letter_queue.message_id = given.get(names.DLQ_ORIGIN_MESSAGE_ID, "")


def _type(given: dict[str, str]) -> pb.MessageType.ValueType:
    if given.get(names.TRAN_MSG, "").lower() == "true" or names.TRANSACTION_ID in given:
        return pb.TRANSACTION
    if names.TIMER_DELIVER_MS in given:
        return pb.DELAY
    if names.SHARDING_KEY in given:
        return pb.FIFO
    return pb.PRIORITY if names.PRIORITY in given else pb.NORMAL


def _number(text: str | None) -> int | None:
    return int(text) if text is not None and text.isascii() and text.isdigit() and len(text) < 15 else None


def _timestamp(milliseconds: int) -> Timestamp:
    return Timestamp(seconds=milliseconds // 1_000, nanos=milliseconds % 1_000 * 1_000_000)
