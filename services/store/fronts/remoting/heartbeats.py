"""Heartbeats: clients that are there, what they are, and that they end; who consumes together."""

from typing import Any

from tandemmq.common.access.needs import group as use_group
from tandemmq.common.access.needs import subscribe
from tandemmq.common.topic_names import RETRY
from tandemmq.common.wire.remoting.codes import RequestCode, ResponseCode
from tandemmq.common.wire.remoting.command import Command
from tandemmq.store.broker.broker import Broker
from tandemmq.store.broker.topics import TopicConfig
from tandemmq.store.delivery.delivery import Delivery
from tandemmq.store.delivery.errors import DeliveryError
from tandemmq.store.delivery.filters.subscriptions import parse
from tandemmq.store.delivery.members.groups import GroupConfig
from tandemmq.store.delivery.port import FilterKind, Subscription
from tandemmq.store.delivery.receiving.receive_rules import admitted
from tandemmq.store.fronts.remoting import json_bodies
from tandemmq.store.fronts.remoting.call import Handler, RemotingCall
from tandemmq.store.fronts.remoting.clients import PUSH, Client, Consumes, RemotingClients, Subscribed
from tandemmq.store.fronts.remoting.rules import Announced, RemotingRules
from tandemmq.store.fronts.remoting.statuses import RemotingRefusal

MOST_GROUPS = 1_000
"""Of one client."""
MOST_TOPICS = 1_000
"""Of one client in one group."""
LONGEST_ID = 255
_NO_V2 = {"IS_SUPPORT_HEART_BEAT_V2": "false", "IS_SUB_CHANGE": "true"}
"""Heartbeats that leave out what has not changed are not taken."""


class RemotingHeartbeats:
    """Notes who is there."""

    def __init__(
        self, broker: Broker, delivery: Delivery, clients: RemotingClients, rules: RemotingRules, announced: Announced
    ) -> None:
        """`announced`: see `rules.Announced`."""
        self._announced = announced
        self._broker = broker
        self._delivery = delivery
        self._clients = clients
        self._create = rules.create_groups

    def handlers(self) -> dict[int, Handler]:
        """By request code."""
        return {
            RequestCode.HEART_BEAT: self.beat,
            RequestCode.UNREGISTER_CLIENT: self.end,
            RequestCode.CHECK_CLIENT_CONFIG: self.check,
            RequestCode.GET_CONSUMER_LIST_BY_GROUP: self.consumers,
        }

    async def beat(self, call: RemotingCall) -> Command:
        """HEART_BEAT: a client is there, as producer and as consumer of some groups."""
        said = json_bodies.read(call.body)
        consumers = [_consumes(one) for one in json_bodies.objects(said, "consumerDataSet")]
        producers = [json_bodies.text(one, "groupName") for one in json_bodies.objects(said, "producerDataSet")]
        if len(consumers) + len(producers) > MOST_GROUPS:
            raise RemotingRefusal(ResponseCode.SYSTEM_ERROR, f"A client may be in {MOST_GROUPS:,} groups.")
        for one in consumers:
            call.demand(use_group(one.group), *(subscribe(topic) for topic in one.topics if not topic.startswith("%")))
        client_id = _client_id(json_bodies.text(said, "clientID"))
        for one in consumers:
            await self._make_ready(one.group)
        client = self._clients.of(call.connection)
        self._clients.named(client, client_id, call.command.language, call.command.version)
        for group in producers:
            self._clients.produces(client, group)
        for one in consumers:
            self._clients.consume(client, one)
        return call.ok(_NO_V2)

    async def _make_ready(self, name: str) -> None:
        """A group that is new is made, with its retry topic: clients look for that at once.

        One that may not be made is not refused here, but where it is used. A slave makes nothing.
        """
        group = self._delivery.groups.get(name)
        if not self._broker.store.writable:
            return
        if group is None:
            try:
                group = await admitted(name, self._delivery.groups, create=self._create)
            except DeliveryError:
                return
        await self._make_retry_topic(group)

    async def _make_retry_topic(self, group: GroupConfig) -> None:
        topic = RETRY + group.name
        if group.retry_queues > 0 and self._broker.topics.get(topic) is None:
            await self._broker.sender.create({topic: TopicConfig(topic, group.retry_queues, group.retry_queues)})
            await self._announced()

    def end(self, call: RemotingCall) -> Command:
        """UNREGISTER_CLIENT: a client is no longer in a group."""
        client: Client = self._clients.of(call.connection)
        call.fields.text("clientID")
        for name, producer in (("producerGroup", True), ("consumerGroup", False)):
            group = call.fields.text_or(name, "")
            if group:
                self._clients.ended(client, group, producer=producer)
        return call.ok()

    def check(self, call: RemotingCall) -> Command:
        """CHECK_CLIENT_CONFIG: whether a filter is understood. Raises BadFilter."""
        said = json_bodies.read(call.body)
        data = said.get("subscriptionData")
        if isinstance(data, dict):
            parse(_subscription(data))
        return call.ok()

    def consumers(self, call: RemotingCall) -> Command:
        """GET_CONSUMER_LIST_BY_GROUP: those who share out the queues."""
        group = call.fields.text("consumerGroup")
        call.demand(use_group(group))
        ids = self._clients.consumer_ids(group)
        if not ids:
            return call.reply(ResponseCode.SYSTEM_ERROR, f"no consumer for this group, {group}")
        return call.ok(None, json_bodies.write({"consumerIdList": ids}))


def _client_id(given: str) -> str:
    if len(given) > LONGEST_ID or not given.isprintable():
        raise RemotingRefusal(
            ResponseCode.SYSTEM_ERROR, f"The client id has over {LONGEST_ID} characters, or odd ones."
        )
    return given


def _consumes(said: dict[str, Any]) -> Consumes:
    """What is said of one group. Raises ProtocolRefusal."""
    topics = json_bodies.objects(said, "subscriptionDataSet")
    if len(topics) > MOST_TOPICS:
        raise RemotingRefusal(ResponseCode.SYSTEM_ERROR, f"A group has {len(topics):,} topics: {MOST_TOPICS:,} may be.")
    return Consumes(
        json_bodies.text(said, "groupName"),
        json_bodies.text_or(said, "consumeType", PUSH),
        json_bodies.text_or(said, "messageModel", "CLUSTERING"),
        json_bodies.text_or(said, "consumeFromWhere", "CONSUME_FROM_LAST_OFFSET"),
        {json_bodies.text(one, "topic"): subscribed(one) for one in topics},
    )


def subscribed(data: dict[str, Any]) -> Subscribed:
    """What is said of one topic. Raises ProtocolRefusal."""
    return Subscribed(_subscription(data), json_bodies.number_or(data, "subVersion", 0), data)


def _subscription(data: dict[str, Any]) -> Subscription:
    kind = json_bodies.text_or(data, "expressionType", FilterKind.TAG.value)
    return Subscription(json_bodies.text_or(data, "subString", "*"), filter_kind(kind))


def filter_kind(text: str) -> FilterKind:
    """TAG or SQL92. Raises ProtocolRefusal."""
    try:
        return FilterKind(text)
    except ValueError:
        raise RemotingRefusal(
            ResponseCode.SUBSCRIPTION_PARSE_FAILED, f"The expression type {text[:40]} is neither TAG nor SQL92."
        ) from None
