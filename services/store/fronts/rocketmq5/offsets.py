"""PullMessage, UpdateOffset, GetOffset, QueryOffset: queues read by offset. No official client asks for them."""

from collections.abc import Iterator
from functools import partial
from typing import NamedTuple, Protocol

from tandemmq.common.access.needs import group as use_group
from tandemmq.common.access.needs import subscribe
from tandemmq.rocketmq5.v2 import calls_pb2
from tandemmq.rocketmq5.v2 import resources_pb2 as pb
from tandemmq.store.broker.long_poll import Room
from tandemmq.store.broker.offsets import QueueState
from tandemmq.store.broker.pulled import NOTHING_YET, PullAnswer, PullStatus, Wanted
from tandemmq.store.broker.tags import TagFilter, parse_tags
from tandemmq.store.broker.topics import TopicTable
from tandemmq.store.format.record import Record, decode_record
from tandemmq.store.fronts.native.room import room_to_answer
from tandemmq.store.fronts.rocketmq5.call import FrontCall
from tandemmq.store.fronts.rocketmq5.given_message import pulled_message
from tandemmq.store.fronts.rocketmq5.receiving import MOST_MESSAGES, seconds_to_wait
from tandemmq.store.fronts.rocketmq5.statuses import OK, ProtocolRefusal

MOST_BYTES = 4 << 20

_NONE = NOTHING_YET | {PullStatus.NO_NEW_MESSAGE, PullStatus.NO_MATCHED_MESSAGE}
_NO_MESSAGE = pb.Status(code=pb.MESSAGE_NOT_FOUND, message="no message")
_MISPLACED = pb.Status(code=pb.ILLEGAL_OFFSET, message="There is nothing at the offset: go on at the next one.")


class QueuesByOffset(Protocol):
    """One broker's queues."""

    @property
    def topics(self) -> TopicTable:
        """Which topics there are."""
        ...

    async def pull(self, wanted: Wanted, wait_seconds: float = 0, room: Room | None = None) -> PullAnswer:
        """See `Broker`."""
        ...

    def offsets_of(self, topic: str, queue_id: int, time_ms: int | None = None) -> QueueState:
        """See `Broker`."""
        ...


class GroupPositions(Protocol):
    """Says where groups are, and sets it."""

    async def position(self, group: str, topic: str, queue: int) -> int | None:
        """The offset below which all is dealt with; None where the group has never been there."""
        ...

    async def commit(self, group: str, topic: str, queue: int, offset: int) -> None:
        """See `DeliveryPort`."""
        ...


class OffsetReads(NamedTuple):
    """What can be read by offset: the queues of one broker in the same process."""

    broker: QueuesByOffset
    groups: GroupPositions


class Offsets:
    """Reads queues by offset, and says where groups and queues are."""

    def __init__(self, reads: OffsetReads | None, most_body: int) -> None:
        """Without `reads` every call is refused as unsupported; `most_body`: bytes of the largest body."""
        self._given = reads
        self._most_body = most_body

    @property
    def _reads(self) -> OffsetReads:
        if self._given is None:
            raise ProtocolRefusal(pb.UNSUPPORTED, "A gateway reads no queues by offset.", remedy="Ask the broker.")
        return self._given

    async def pull(self, request: calls_pb2.PullMessageRequest, call: FrontCall) -> None:
        """Write the parts of one answer: status, messages, next offset. Raises ProtocolRefusal, PermissionDenied."""
        topic, queue = self._queue(request.message_queue, call)
        group = call.group(request.group)
        call.demand(use_group(group), subscribe(topic))
        _check_offset(request.offset)
        if request.batch_size < 1:
            raise ProtocolRefusal(pb.BAD_REQUEST, f"The batch size is {request.batch_size}: it must be at least 1.")
        tags, most = _tags(request.filter_expression), min(request.batch_size, MOST_MESSAGES)
        wanted = Wanted(topic, queue, request.offset, most, MOST_BYTES, tags, group)
        wait = seconds_to_wait(request.long_polling_timeout, call)
        pulled = await self._reads.broker.pull(wanted, wait, partial(room_to_answer, call.context))
        await _write(call, calls_pb2.PullMessageResponse(status=_status(pulled)))
        for record in _records(pulled):
            if tags is None or record.tags in tags.tags:
                message = await pulled_message(
                    record, request.message_queue.topic, self._most_body, call.caller.namespace
                )
                await _write(call, calls_pb2.PullMessageResponse(message=message))
        await _write(call, calls_pb2.PullMessageResponse(next_offset=pulled.next_offset))

    async def update(self, request: calls_pb2.UpdateOffsetRequest, call: FrontCall) -> calls_pb2.UpdateOffsetResponse:
        """A group has dealt with all below an offset. Raises ProtocolRefusal, PermissionDenied."""
        group, topic, queue = self._of_group(request.group, request.message_queue, call)
        _check_offset(request.offset)
        await self._reads.groups.commit(group, topic, queue, request.offset)
        return calls_pb2.UpdateOffsetResponse(status=OK)

    async def get(self, request: calls_pb2.GetOffsetRequest, call: FrontCall) -> calls_pb2.GetOffsetResponse:
        """Where a group is in a queue. Raises ProtocolRefusal, PermissionDenied."""
        group, topic, queue = self._of_group(request.group, request.message_queue, call)
        self._reads.broker.offsets_of(topic, queue)  # there must be such a queue
        found = await self._reads.groups.position(group, topic, queue)
        if found is None:
            raise ProtocolRefusal(pb.OFFSET_NOT_FOUND, f"Group {group} has no offset in queue {queue} of {topic}.")
        return calls_pb2.GetOffsetResponse(status=OK, offset=found)

    async def query(self, request: calls_pb2.QueryOffsetRequest, call: FrontCall) -> calls_pb2.QueryOffsetResponse:
        """Where a queue begins, ends, or is at a time. Raises ProtocolRefusal, PermissionDenied."""
        topic, queue = self._queue(request.message_queue, call)
        call.demand(subscribe(topic))
        policy = request.query_offset_policy
        if policy not in calls_pb2.QueryOffsetPolicy.values():
            raise ProtocolRefusal(pb.BAD_REQUEST, f"There is no offset policy {int(policy)}.")
        given = request.timestamp
        at = given.seconds * 1_000 + given.nanos // 1_000_000 if policy == calls_pb2.TIMESTAMP else None
        state = self._reads.broker.offsets_of(topic, queue, at)
        if policy == calls_pb2.BEGINNING:
            return calls_pb2.QueryOffsetResponse(status=OK, offset=state.min_offset)
        end = state.max_offset if at is None or state.at_time is None else state.at_time
        return calls_pb2.QueryOffsetResponse(status=OK, offset=end)

    def _of_group(self, group: pb.Resource, queue: pb.MessageQueue, call: FrontCall) -> tuple[str, str, int]:
        name = call.group(group)
        topic, number = self._queue(queue, call)
        call.demand(use_group(name), subscribe(topic))
        return name, topic, number

    def _queue(self, queue: pb.MessageQueue, call: FrontCall) -> tuple[str, int]:
        topic = call.topic(queue.topic)
        if self._reads.broker.topics.get(topic) is None:
            raise ProtocolRefusal(pb.TOPIC_NOT_FOUND, f"Topic {topic} does not exist.", remedy="Create it first.")
        return topic, queue.id


async def _write(call: FrontCall, part: calls_pb2.PullMessageResponse) -> None:
    await call.context.write(part.SerializeToString())


def _check_offset(offset: int) -> None:
    if offset < 0:
        raise ProtocolRefusal(pb.ILLEGAL_OFFSET, f"The offset is {offset}: it cannot be negative.")


def _tags(given: pb.FilterExpression) -> TagFilter | None:
    if given.type not in (pb.FILTER_TYPE_UNSPECIFIED, pb.TAG):
        raise ProtocolRefusal(pb.ILLEGAL_FILTER_EXPRESSION, "Who reads by offset can filter by tags only.")
    return parse_tags(given.expression)


def _status(pulled: PullAnswer) -> pb.Status:
    if pulled.status is PullStatus.FOUND:
        return OK
    if pulled.status in _NONE:
        return _NO_MESSAGE
    return _MISPLACED


def _records(pulled: PullAnswer) -> Iterator[Record]:
    at = 0
    while at < len(pulled.records):
        record = decode_record(pulled.records, at, verify=False)
        at += record.size
        yield record
