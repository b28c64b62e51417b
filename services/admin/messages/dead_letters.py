"""Messages that came to nothing, sent again.

A consumer group's dead letters are in the topic `%DLQ%group`. Each says where it comes from: DLQ_ORIGIN_TOPIC of
RocketMQ 5, RETRY_TOPIC of those that were retried before. They stay where they are: a log is only ever added to.
"""

from contextlib import aclosing
from typing import NamedTuple

from tandemmq.admin.cluster.brokers import Brokers
from tandemmq.admin.cluster.nodes import KnownNode
from tandemmq.admin.errors import AdminError, AlreadyExists, BadAdminRequest, CallRefused, NotFound
from tandemmq.admin.messages.messages import Messages, has_topic, put_message
from tandemmq.admin.messages.reading import checked_limit, merge_by_time, spans_between
from tandemmq.admin.v1 import admin_pb2
from tandemmq.common.topic_names import GROUP_TOPICS, dead_letter_topic
from tandemmq.store.format import properties as names
from tandemmq.store.v1 import message_pb2, store_pb2

RESENT_FROM = "TANDEM_RESENT_FROM"
"""Property of a message that was sent again: topic and id of the dead letter, `%DLQ%group/7F00…`."""

_DEFAULT_LIMIT, _MOST = 100, 1000
_COPIES = 64
"""So many of one message are looked through for a copy that was sent before."""

_ORIGINS = (names.DLQ_ORIGIN_TOPIC, names.RETRY_TOPIC)
"""Where a dead letter says which topic it was in, the surer first."""

_NO_ORIGIN = GROUP_TOPICS
"""Such topics are stations on the way to a dead letter, not where it was sent to."""

_OF_THE_BROKER = frozenset(
    {
        names.WAIT, names.DELAY, names.RETRY_TOPIC, names.REAL_TOPIC, names.REAL_QID, names.ORIGIN_MESSAGE_ID,
        names.RECONSUME_TIME, names.MAX_RECONSUME_TIMES, names.MIN_OFFSET, names.MAX_OFFSET, names.TRAN_MSG,
        names.PGROUP, names.TRANSACTION_CHECK_TIMES, names.CHECK_IMMUNITY_TIME, names.TRAN_PREPARED_QUEUE_OFFSET,
        names.TRANSACTION_ID, names.CLUSTER, names.CRC32, names.INNER_NUM, names.INNER_BASE,
        names.INNER_MULTI_DISPATCH, names.INNER_MULTI_QUEUE_OFFSET, names.TIMER_DELIVER_MS, names.TIMER_DELAY_MS,
        names.TIMER_DELAY_SEC, names.TIMER_OUT_MS, names.DLQ_ORIGIN_TOPIC, names.DLQ_ORIGIN_MESSAGE_ID, names.DUP_INFO,
        names.POP_CK, "TIMER_ENQUEUE_MS", "TIMER_DEQUEUE_MS", "TIMER_ROLL_TIMES", "TIMER_DEL_UNIQKEY", "1ST_POP_TIME",
        RESENT_FROM,
    }
)  # fmt: skip
"""Properties that tell of the message's way through the broker: in a new message they would be wrong, or delay it."""

_SYS_FLAGS = 0x703
"""Of the system flags what a producer sets: compressed, several tags, kind of compression."""


class DeadLetters:
    """Copies messages of a dead-letter topic back."""

    def __init__(self, brokers: Brokers, messages: Messages) -> None:
        self._brokers, self._messages = brokers, messages

    async def resend(self, request: admin_pb2.ResendMessagesRequest) -> admin_pb2.ResendMessagesResponse:
        """See admin.proto. What becomes of one message does not stop the others. Raises AdminError."""
        if not request.group:
            raise BadAdminRequest("group is missing")
        limit = checked_limit(request.limit, _DEFAULT_LIMIT, _MOST)
        topic = dead_letter_topic(request.group)
        masters = dict(await self._brokers.masters(request.broker))
        found, more = await self._find(request, topic, limit)
        answer = admin_pb2.ResendMessagesResponse(more=more)
        known: dict[tuple[str, str], bool] = {}
        for one in found:
            resending = Resending(masters[one.broker], known, dry_run=request.dry_run, again=request.again)
            answer.messages.append(await resending.resend(one))
        return answer

    async def _find(
        self, request: admin_pb2.ResendMessagesRequest, topic: str, limit: int
    ) -> tuple[list[admin_pb2.FoundMessage], bool]:
        """The dead letters that are meant, whole; and whether there are more."""
        if request.message_ids:
            if len(request.message_ids) > limit:
                raise BadAdminRequest(f"{len(request.message_ids)} messages are named, limit is {limit}")
            asked = (
                admin_pb2.FindMessagesRequest(topic=topic, broker=request.broker, message_id=one, with_bodies=True)
                for one in dict.fromkeys(request.message_ids)
            )
            return [one for each in asked for one in (await self._messages.find(each)).messages], False
        readers = await self._brokers.readers(request.broker)
        try:
            spans = await spans_between(readers, topic, request.begin_ms, request.end_ms)
        except CallRefused as error:
            if error.code != "NOT_FOUND":
                raise
            raise NotFound(f"group {request.group} has no dead letters, if there is such a group") from error
        found: list[admin_pb2.FoundMessage] = []
        async with aclosing(merge_by_time(topic, spans)) as messages:
            async for broker, message in messages:
                if len(found) == limit:
                    return found, True
                found.append(admin_pb2.FoundMessage(broker=broker, message=message))
        return found, False


class Resending(NamedTuple):
    """How letters of one broker go back: to its master, unless it is a dry run."""

    master: KnownNode
    known: dict[tuple[str, str], bool]
    """Whether (broker, topic) exists, as far as it was asked."""
    dry_run: bool
    again: bool

    async def resend(self, one: admin_pb2.FoundMessage) -> admin_pb2.ResendMessagesResponse.Resent:
        """Send one, or say why not."""
        letter = one.message
        topic = origin_of(letter)
        resent = admin_pb2.ResendMessagesResponse.Resent(
            message_id=letter.message_id, topic=topic, store_ms=letter.store_timestamp, keys=letter.keys,
            tag=letter.tag, tries=letter.reconsume_times,
        )  # fmt: skip
        try:
            if not topic:
                raise NotFound("it does not say which topic it comes from")
            if (one.broker, topic) not in self.known:
                self.known[one.broker, topic] = await has_topic(self.master, topic)
            if not self.known[one.broker, topic]:  # sending would create it
                raise NotFound(f"there is no topic {topic} any more")
            resent.resent_ms = await self._sent_before(letter, topic)
            if resent.resent_ms and not self.again:
                raise AlreadyExists("a copy of it was sent before", remedy="to send another, say `again`")
            if not self.dry_run:
                resent.receipt.CopyFrom(await put_message(self.master, copy_of(letter, topic)))
        except AdminError as error:
            resent.problem = error.explain()
        return resent

    async def _sent_before(self, letter: message_pb2.StoredMessage, topic: str) -> int:
        """When the newest copy of a letter was stored; 0 if there is none, or nothing to find it by."""
        if not letter.unique_key:
            return 0
        asked = store_pb2.QueryMessageRequest(
            topic=topic, unique_key=letter.unique_key, max_messages=_COPIES, form=message_pb2.DECODED
        )
        try:
            answer = await self.master.ask("store", self.master.store.QueryMessage(asked))
        except CallRefused:  # there is no index
            return 0
        mark = mark_of(letter)
        times = (one.store_timestamp for one in answer.messages if one.properties.get(RESENT_FROM) == mark)
        return max(times, default=0)


def mark_of(letter: message_pb2.StoredMessage) -> str:
    """What its copies say of where they come from."""
    return f"{letter.topic}/{letter.message_id}"


def origin_of(letter: message_pb2.StoredMessage) -> str:
    """The topic that a dead letter comes from; empty if it does not say."""
    said = (letter.properties.get(name, "") for name in _ORIGINS)
    return next((topic for topic in said if topic and not topic.startswith(_NO_ORIGIN)), "")


def copy_of(letter: message_pb2.StoredMessage, topic: str) -> message_pb2.Message:
    """What is sent: body and the producer's own properties, UNIQ_KEY too, so that all copies are found by it."""
    kept = {name: value for name, value in letter.properties.items() if name not in _OF_THE_BROKER}
    return message_pb2.Message(
        topic=topic,
        body=letter.body,
        properties={**kept, RESENT_FROM: mark_of(letter)},
        flag=letter.flag,
        sys_flag=letter.sys_flag & _SYS_FLAGS,
        born_timestamp=letter.born_timestamp,
        born_host=letter.born_host,
    )
