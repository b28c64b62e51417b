"""Groups, as tools ask for them: made, changed, deleted, listed; which topics they have."""

from typing import Any

from tandemmq.common.access.needs import Action, Need
from tandemmq.common.topic_names import RETRY
from tandemmq.common.wire.remoting.codes import RequestCode, ResponseCode
from tandemmq.common.wire.remoting.command import Command
from tandemmq.common.wire.remoting.java_objects import dumps
from tandemmq.store.broker.broker import Broker
from tandemmq.store.broker.topics import TopicConfig
from tandemmq.store.delivery.delivery import Delivery
from tandemmq.store.delivery.members.groups import GroupConfig
from tandemmq.store.fronts.remoting import json_bodies
from tandemmq.store.fronts.remoting.administration.attribute_changes import OF_GROUPS, attributes_of, changed
from tandemmq.store.fronts.remoting.administration.rules import AdministrationRules
from tandemmq.store.fronts.remoting.call import Handler, RemotingCall
from tandemmq.store.fronts.remoting.statuses import RemotingRefusal

_VIEW, _MANAGE = Need(Action.VIEW), Need(Action.MANAGE)


class GroupAdmin:
    """Answers about groups."""

    def __init__(self, broker: Broker, delivery: Delivery, rules: AdministrationRules) -> None:
        self._broker = broker
        self._delivery = delivery
        self._rules = rules

    def handlers(self) -> dict[int, Handler]:
        """By request code."""
        return {
            RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP: self.put,
            RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP_LIST: self.put_all,
            RequestCode.DELETE_SUBSCRIPTIONGROUP: self.delete,
            RequestCode.GET_SUBSCRIPTIONGROUP_CONFIG: self.show,
            RequestCode.QUERY_TOPICS_BY_CONSUMER: self.topics,
        }

    async def put(self, call: RemotingCall) -> Command:
        """UPDATE_AND_CREATE_SUBSCRIPTIONGROUP: a group is like this from now on."""
        call.demand(_MANAGE)
        await self._put(self._wanted(json_bodies.read(call.body)))
        return call.ok()

    async def put_all(self, call: RemotingCall) -> Command:
        """UPDATE_AND_CREATE_SUBSCRIPTIONGROUP_LIST: the same of many; none is changed unless all of them make sense."""
        call.demand(_MANAGE)
        wanted = [self._wanted(one) for one in json_bodies.objects(json_bodies.read(call.body), "groupConfigList")]
        if not wanted:
            raise RemotingRefusal(ResponseCode.SYSTEM_ERROR, "The request names no group.")
        for group in wanted:
            await self._put(group)
        return call.ok()

    async def _put(self, group: GroupConfig) -> None:
        """Keep it, with its retry topic: tools look for a group at the brokers of that."""
        await self._rules.edits.put_group(group)
        topic, topics = RETRY + group.name, self._broker.topics
        if group.retry_queues > 0 and topics.get(topic) is None and self._broker.store.writable:
            await topics.add([TopicConfig(topic, group.retry_queues, group.retry_queues)])
            await self._rules.announced()

    async def delete(self, call: RemotingCall) -> Command:
        """DELETE_SUBSCRIPTIONGROUP; cleanOffset (5.x) or removeOffset (4.9): its positions go with it."""
        call.demand(_MANAGE)
        fields = call.fields
        clean = fields.flag_or("cleanOffset", False) or fields.flag_or("removeOffset", False)
        await self._rules.edits.delete_group(fields.text("groupName"), keep_offsets=not clean)
        return call.ok()

    def _wanted(self, said: dict[str, Any]) -> GroupConfig:
        """A group as it is to be; `attributes` are said as changes. Raises RemotingRefusal."""
        name = json_bodies.text(said, "groupName")
        before = self._delivery.groups.get(name)
        attributes = changed(OF_GROUPS, None if before is None else before.attributes, attributes_of(said))
        try:
            return GroupConfig.from_json(name, said | {"attributes": attributes})
        except ValueError as error:
            raise RemotingRefusal(ResponseCode.SYSTEM_ERROR, str(error)) from error

    def show(self, call: RemotingCall) -> Command:
        """GET_SUBSCRIPTIONGROUP_CONFIG."""
        call.demand(_VIEW)
        name = call.fields.text("group")
        group = self._delivery.groups.get(name)
        if group is None:
            raise RemotingRefusal(ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST, f"group {name} not exist")
        return call.ok(body=dumps(group.to_json()))

    def topics(self, call: RemotingCall) -> Command:
        """QUERY_TOPICS_BY_CONSUMER: topics in which a group has a position."""
        call.demand(_VIEW)
        places = self._delivery.ledger.places(call.fields.text("group"))
        topics = sorted({one.place.topic for one in places})
        return call.ok(body=dumps({"brokerAddr": self._rules.address, "topicList": topics}))
