"""SendMessage: messages of one topic, each with an outcome of its own."""

from tandemmq.common.access.needs import publish
from tandemmq.common.errors import TandemError
from tandemmq.rocketmq5.v2 import calls_pb2, message_pb2
from tandemmq.rocketmq5.v2 import resources_pb2 as pb
from tandemmq.store.broker.group_transfer import PutStatus
from tandemmq.store.broker.send import NewMessage
from tandemmq.store.broker.topics import TopicConfig
from tandemmq.store.fronts.broker_port import BrokerPort, StoredMessage
from tandemmq.store.fronts.rocketmq5 import body_digest
from tandemmq.store.fronts.rocketmq5.call import FrontCall
from tandemmq.store.fronts.rocketmq5.message_types import check_type
from tandemmq.store.fronts.rocketmq5.sent_message import check_delay, new_message, type_of
from tandemmq.store.fronts.rocketmq5.statuses import OK, ProtocolRefusal, joined, status_of
from tandemmq.store.fronts.rocketmq5.topic_access import TopicAccess

MOST_MESSAGES = 1024

STATUSES = {
    PutStatus.PUT_OK: OK,
    PutStatus.FLUSH_DISK_TIMEOUT: pb.Status(
        code=pb.MASTER_PERSISTENCE_TIMEOUT, message="The message is stored, and not on the disk yet."
    ),
    PutStatus.FLUSH_SLAVE_TIMEOUT: pb.Status(
        code=pb.SLAVE_PERSISTENCE_TIMEOUT, message="The message is stored, and not at its slaves yet."
    ),
    PutStatus.SLAVE_NOT_AVAILABLE: pb.Status(
        code=pb.HA_NOT_AVAILABLE, message="The message is stored, and no slave is there to have it."
    ),
}


class Sending:
    """Takes messages of producers."""

    def __init__(self, port: BrokerPort, topics: TopicAccess, most_body: int, longest_delay_ms: int) -> None:
        """`most_body`: bytes of the largest body; `longest_delay_ms`: how far ahead a delivery time may be."""
        self._port = port
        self._topics = topics
        self._most_body = most_body
        self._longest_delay_ms = longest_delay_ms

    async def send(self, request: calls_pb2.SendMessageRequest, call: FrontCall) -> calls_pb2.SendMessageResponse:
        """Store all of them that can be. Raises ProtocolRefusal, PermissionDenied for the whole request."""
        topic = self._topic(request, call)
        call.demand(publish(topic))
        config = await self._topics.found_or_made(topic, call)
        entries = await self._entries(request, topic, config, call)
        return calls_pb2.SendMessageResponse(status=joined([one.status for one in entries]), entries=entries)

    def _topic(self, request: calls_pb2.SendMessageRequest, call: FrontCall) -> str:
        messages = request.messages
        if not 1 <= len(messages) <= MOST_MESSAGES:
            raise ProtocolRefusal(
                pb.BAD_REQUEST, f"The request has {len(messages):,} messages: allowed is 1 to {MOST_MESSAGES:,}."
            )
        topics = {call.topic(message.topic) for message in messages}
        if len(topics) != 1:
            raise ProtocolRefusal(pb.BAD_REQUEST, f"The request has messages of {len(topics)} topics: allowed is one.")
        return topics.pop()

    async def _entries(
        self, request: calls_pb2.SendMessageRequest, topic: str, config: TopicConfig, call: FrontCall
    ) -> list[calls_pb2.SendResultEntry]:
        entries: list[calls_pb2.SendResultEntry] = []
        numbers: list[int] = []
        items: list[NewMessage] = []
        for number, message in enumerate(request.messages):
            try:
                items.append(await self._new(message, topic, config, call))
                numbers.append(number)
                entries.append(calls_pb2.SendResultEntry())
            except TandemError as error:
                entries.append(refused_entry(message, error))
        if items:
            outcomes = await self._port.send(items, call.user)
            for number, outcome in zip(numbers, outcomes, strict=True):
                entries[number] = (
                    refused_entry(request.messages[number], outcome)
                    if isinstance(outcome, TandemError)
                    else entry_of(outcome)
                )
        return entries

    async def _new(self, message: message_pb2.Message, topic: str, config: TopicConfig, call: FrontCall) -> NewMessage:
        """The message for the broker, which chooses its queue (rule 14). Raises ProtocolRefusal."""
        kind = type_of(message)
        check_type(config, kind)
        check_delay(message.system_properties, self._longest_delay_ms)
        new = new_message(message, topic, kind, call.caller.peer, self._most_body)
        await body_digest.check(message.system_properties.body_digest, new.body)
        return new


def entry_of(stored: StoredMessage) -> calls_pb2.SendResultEntry:
    """What a producer is told of a message that is stored."""
    return calls_pb2.SendResultEntry(
        status=STATUSES[stored.status],
        message_id=stored.message_id,
        transaction_id=stored.transaction_id,
        offset=stored.offset,
        recall_handle=stored.recall_handle,
    )


def refused_entry(message: message_pb2.Message, error: TandemError) -> calls_pb2.SendResultEntry:
    """What a producer is told of a message that is not."""
    return calls_pb2.SendResultEntry(status=status_of(error), message_id=message.system_properties.message_id)
