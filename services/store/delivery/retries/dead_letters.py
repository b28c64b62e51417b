"""Dead letters: messages that were given out as often as their group allows, or that a consumer gave up.

A copy in `%DLQ%<group>` and the fact that the message is dealt with, one after the other in the log, the copy first.
RocketMQ: ``AbstractSendMessageProcessor.consumerSendMsgBack``.
"""

from tandemmq.common.errors import TandemError
from tandemmq.common.log_output import get_log
from tandemmq.common.topic_names import dead_letter_topic
from tandemmq.store.broker.topics import TopicConfig, TopicTable
from tandemmq.store.delivery.journal.facts import Dealt, Place
from tandemmq.store.delivery.journal.journal import Journal
from tandemmq.store.delivery.retries.copies import internal_copy
from tandemmq.store.format import properties
from tandemmq.store.format.host import Host
from tandemmq.store.format.message import Message
from tandemmq.store.format.message_id import encode_offset_id
from tandemmq.store.format.record import Record, decode_record

log = get_log(__name__)


def origin_of(record: Record, store_host: Host, topic: str) -> dict[str, str]:
    """RocketMQ's properties of a copy that a group gets again: where the message was first."""
    given = record.properties
    here = encode_offset_id(store_host, record.physical_offset)
    return {
        properties.RETRY_TOPIC: given.get(properties.RETRY_TOPIC) or topic,
        properties.ORIGIN_MESSAGE_ID: given.get(properties.ORIGIN_MESSAGE_ID) or here,
    }


class Graveyard:
    """Writes dead letters."""

    def __init__(self, journal: Journal, topics: TopicTable, store_host: Host) -> None:
        self._journal = journal
        self._topics = topics
        self._host = store_host
        self.buried: dict[tuple[str, str], int] = {}
        """Messages by group and topic since the start; the topic as the message was first sent to it."""

    def has_topic(self, group: str) -> bool:
        """Whether the group's topic is there."""
        return self._topics.get(dead_letter_topic(group)) is not None

    async def open(self, group: str) -> None:
        """Make the group's topic, where there is none. Raises TableNotSaved."""
        if not self.has_topic(group):
            await self._topics.add([TopicConfig(dead_letter_topic(group), 1, 1)])

    def letter(self, data: bytes, group: str, deliveries: int) -> Message:
        """The dead letter of a record that was given out so often."""
        record = decode_record(data, verify=False)
        extra = origin_of(record, self._host, record.topic)
        origin = extra[properties.RETRY_TOPIC]
        extra[properties.DLQ_ORIGIN_TOPIC] = origin
        extra[properties.DLQ_ORIGIN_MESSAGE_ID] = record.unique_key or extra[properties.ORIGIN_MESSAGE_ID]
        return internal_copy(
            record, dead_letter_topic(group), 0, self._host, extra=extra, reconsume_times=max(deliveries, 0)
        )

    def bury(self, place: Place, offset: int, data: bytes, deliveries: int) -> Dealt | None:
        """Write the dead letter; gives the fact, which is to be noted in the same turn.

        None where it cannot be written now; it is to be tried again.
        """
        try:
            message = self.letter(data, place.group, deliveries)
            copy = self._journal.copy(message)
        except TandemError as error:
            log.warning("a dead letter cannot be written now", group=place.group, topic=place.topic, reason=str(error))
            return None
        origin = decode_record(data, verify=False).properties.get(properties.RETRY_TOPIC) or place.topic
        self.count(place.group, origin)
        return Dealt(place, offset, 1, copy.physical_offset)

    def count(self, group: str, topic: str) -> None:
        """A message that was first sent to this topic became a dead letter. The first is told, the tenth, and so on."""
        number = self.buried[group, topic] = self.buried.get((group, topic), 0) + 1
        if str(number).rstrip("0") == "1":
            log.warning("messages became dead letters", group=group, topic=topic, since_the_start=number)
