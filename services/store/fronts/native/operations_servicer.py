"""For people: how groups stand, what waits, and topics and groups made by one call."""

import json
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import grpc

from tandemmq.common.attributes import group_attributes, topic_attributes
from tandemmq.common.topic_names import is_system_group, is_system_topic
from tandemmq.delivery.v1 import operations_pb2 as pb
from tandemmq.delivery.v1 import operations_pb2_grpc
from tandemmq.metadata.v1 import metadata_pb2
from tandemmq.store.broker.broker import Broker
from tandemmq.store.broker.errors import BadRequest, StoreStarting
from tandemmq.store.broker.rules import check_topic_name
from tandemmq.store.delivery.errors import AlreadyThere
from tandemmq.store.delivery.figures.views import Views
from tandemmq.store.delivery.members.groups import GroupTable
from tandemmq.store.delivery.members.member_questions import ShowThreads, TryMessage
from tandemmq.store.delivery.receiving.receive_rules import check_group_name
from tandemmq.store.delivery.retries.retry_policy import is_policy
from tandemmq.store.format.record import decode_record
from tandemmq.store.fronts.native import operations_answers
from tandemmq.store.fronts.native.timed import timed
from tandemmq.store.metrics import StoreMetrics
from tandemmq.store.table_messages import read_group, read_topic

Context = grpc.aio.ServicerContext[Any, Any]

MOST_GROUPS = 1_000
MOST_HALVES = 1_000
DEFAULT_HALVES = 100
MOST_PLACES = 64
MOST_FAILING = 1_000
DEFAULT_FAILING = 100
MOST_QUEUES = 1_024
MOST_ATTRIBUTES = 4_096
"""Characters of a topic's or group's attributes."""
MOST_OTHER = 16_384
"""Characters of a group's retry policy."""


class OperationsServicer(operations_pb2_grpc.OperationsServicer):
    """`tandemmq.delivery.v1.Operations`; what each call means is written in the contract, operations.proto."""

    def __init__(self, metrics: StoreMetrics) -> None:
        """Every call is refused with StoreStarting until `attach`."""
        self.metrics = metrics
        self._views: Views | None = None
        self._broker: Broker | None = None
        self._groups: GroupTable | None = None

    def attach(self, views: Views, broker: Broker, groups: GroupTable) -> None:
        """Answer from a recovered store from now on."""
        self._views, self._broker, self._groups = views, broker, groups

    @property
    def views(self) -> Views:
        """What answers. Raises StoreStarting."""
        if self._views is None:
            raise _starting()
        return self._views

    @timed
    async def ViewGroups(self, request: pb.ViewGroupsRequest, context: Context) -> pb.ViewGroupsResponse:
        """How groups stand."""
        views = self.views
        if len(request.groups) > MOST_GROUPS:
            raise BadRequest(f"The request names {len(request.groups):,} groups: at most {MOST_GROUPS:,} are allowed.")
        if "" in request.groups:
            raise BadRequest("The request names a group without a name.")
        now = views.now_seconds
        found = await views.groups(request.groups)
        response, slices = pb.ViewGroupsResponse(), views.slices()
        for one in found:
            await operations_answers.group_view(response, one, now, slices, with_members=request.with_members)
            await slices.pause()
        return response

    @timed
    async def ViewMessages(self, request: pb.ViewMessagesRequest, context: Context) -> pb.ViewMessagesResponse:
        """Where messages stand."""
        views, places = self.views, request.places
        if bool(places) == bool(request.group):
            raise BadRequest("Name places of messages, or a group: one of them.")
        if len(places) > MOST_PLACES:
            raise BadRequest(f"The request names {len(places):,} places: at most {MOST_PLACES} are allowed.")
        if not 0 <= request.limit <= MOST_FAILING:
            raise BadRequest(f"limit is {request.limit}: allowed is 0 to {MOST_FAILING:,}.")
        if request.group:
            found = await views.failing(request.group, request.limit or DEFAULT_FAILING)
        else:
            wanted: dict[tuple[str, int], set[int]] = {}
            for one in places:
                wanted.setdefault((one.topic, one.queue_id), set()).add(one.queue_offset)
            found = await views.messages(wanted)
        return pb.ViewMessagesResponse(messages=map(operations_answers.message_standing, found))

    @timed
    async def ViewWaiting(self, request: pb.ViewWaitingRequest, context: Context) -> pb.ViewWaitingResponse:
        """What is delivered later, and half messages."""
        views = self.views
        if not 0 <= request.limit <= MOST_HALVES:
            raise BadRequest(f"limit is {request.limit}: allowed is 0 to {MOST_HALVES:,}.")
        return operations_answers.waiting_view(
            await views.waiting(), await views.halves(request.limit or DEFAULT_HALVES)
        )

    @timed
    async def CreateTopic(self, request: pb.CreateTopicRequest, context: Context) -> pb.CreateTopicResponse:
        """A topic, which can be used when this is answered."""
        await self.views.check()
        if self._broker is None:
            raise _starting()
        config = request.config
        check_topic_name(config.name)
        if is_system_topic(config.name):
            raise BadRequest(f"Topic {config.name} is one of the broker's own.")
        _check_queues("read_queues", config)
        _check_queues("write_queues", config)
        if config.HasField("perm") and not 0 <= config.perm <= 7:
            raise BadRequest(f"perm is {config.perm}: 4 read + 2 write + 1 inherit.")
        _check_attributes(config.attributes, topic_attributes.allowed)
        _check_other(config)
        if self._broker.topics.get(config.name) is not None:
            raise AlreadyThere(f"Topic {config.name} exists.", remedy="`tandem topic update` changes it")
        await self._broker.topics.add([read_topic(config)])
        return pb.CreateTopicResponse()

    @timed
    async def CreateGroup(self, request: pb.CreateGroupRequest, context: Context) -> pb.CreateGroupResponse:
        """A group, which can be used when this is answered."""
        await self.views.check()
        if self._groups is None:
            raise _starting()
        config = request.config
        check_group_name(config.name)
        if is_system_group(config.name):
            raise BadRequest(f"Group {config.name} is one of the broker's own.")
        if config.HasField("retry_queues") and not 0 <= config.retry_queues <= MOST_QUEUES:
            raise BadRequest(f"retry_queues is {config.retry_queues}: allowed is 0 to {MOST_QUEUES:,}.")
        for name in ("retry_max_times", "consume_timeout_minutes"):
            if config.HasField(name) and getattr(config, name) < -1:
                raise BadRequest(f"{name} is {getattr(config, name)}: allowed is -1 and more.")
        _check_attributes(config.attributes, group_attributes.allowed)
        _check_other(config, "groupRetryPolicy")
        if self._groups.get(config.name) is not None:
            raise AlreadyThere(f"Group {config.name} exists.", remedy="`tandem group update` changes it")
        await self._groups.add([read_group(config)])
        return pb.CreateGroupResponse()

    @timed
    async def ShowThreads(self, request: pb.ShowThreadsRequest, context: Context) -> pb.MemberAnswer:
        """Where the threads of a client are."""
        sessions = await self.views.sessions()
        answer = await sessions.ask_member(request.group, request.client_id, ShowThreads)
        return pb.MemberAnswer(code=answer.code, text=answer.text)

    @timed
    async def TryMessage(self, request: pb.TryMessageRequest, context: Context) -> pb.MemberAnswer:
        """What a client makes of a message."""
        views = self.views
        if self._broker is None:
            raise _starting()
        data = self._broker.view(request.message_id)
        topic = decode_record(data, verify=False).topic
        sessions = await views.sessions()
        answer = await sessions.ask_member(
            request.group, request.client_id, partial(TryMessage, topic=topic, record=data)
        )
        return pb.MemberAnswer(code=answer.code, text=answer.text)


def _check_queues(name: str, config: metadata_pb2.TopicConfig) -> None:
    given = getattr(config, name)
    if config.HasField(name) and not 1 <= given <= MOST_QUEUES:  # type: ignore[arg-type]  # one of two names
        raise BadRequest(f"{name} is {given}: allowed is 1 to {MOST_QUEUES:,}.")


def _check_attributes(attributes: Mapping[str, str], allowed: Callable[[str, str], str]) -> None:
    if sum(len(key) + len(value) for key, value in attributes.items()) > MOST_ATTRIBUTES:
        raise BadRequest(f"The attributes have more than {MOST_ATTRIBUTES:,} characters.")
    for key, value in attributes.items():
        if not key or key[0] in "+-" or not key.isprintable():
            raise BadRequest(f"There is an attribute {key[:40]!r}: give all of them by their plain names.")
        if right := allowed(key, value):
            raise BadRequest(f"The attribute {key} is {value[:40]!r}: allowed is {right}.")


def _check_other(config: metadata_pb2.TopicConfig | metadata_pb2.SubscriptionGroupConfig, known: str = "") -> None:
    """`known`: what of `other_json` means something here; it is a group's policy."""
    if not config.other_json:
        return
    try:
        other = json.loads(config.other_json)
        json.dumps(other, ensure_ascii=False, allow_nan=False).encode()
    except (ValueError, RecursionError):
        other = None
    if not known or not isinstance(other, dict) or other.keys() - {known}:
        raise BadRequest("other_json is refused: fields that are not known here are for the metadata service to keep.")
    if len(config.other_json) > MOST_OTHER or (known in other and not is_policy(other[known])):
        raise BadRequest(
            f"{known} is refused: it says no waits, or too many.", remedy="Write it as RocketMQ's GroupRetryPolicy."
        )


def _starting() -> StoreStarting:
    return StoreStarting("The store is still recovering.", remedy="Try again when its health says SERVING.")
