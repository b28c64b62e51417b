"""Topics, as tools ask for them: made, changed, deleted, listed; where their queues stand, who consumes them."""

from typing import Any

from tandemmq.common.access.needs import Action, Need
from tandemmq.common.slices import Slices
from tandemmq.common.wire.remoting.codes import RequestCode, ResponseCode
from tandemmq.common.wire.remoting.command import Command
from tandemmq.common.wire.remoting.java_objects import QueueKey, dumps
from tandemmq.store.broker.broker import Broker
from tandemmq.store.broker.reading import read_whole
from tandemmq.store.broker.rules import check_topic_name
from tandemmq.store.broker.topics import TopicConfig
from tandemmq.store.delivery.delivery import Delivery
from tandemmq.store.format.record import decode_record
from tandemmq.store.fronts.remoting import json_bodies
from tandemmq.store.fronts.remoting.administration.attribute_changes import OF_TOPICS, attributes_of, changed, parsed
from tandemmq.store.fronts.remoting.administration.rules import AdministrationRules
from tandemmq.store.fronts.remoting.administration.sliced import sliced
from tandemmq.store.fronts.remoting.call import Handler, RemotingCall
from tandemmq.store.fronts.remoting.statuses import RemotingRefusal

_MOST_QUEUES = 1_024
_MOST_UNITS = 1_024
_VIEW, _MANAGE = Need(Action.VIEW), Need(Action.MANAGE)


class TopicAdmin:
    """Answers about topics."""

    def __init__(self, broker: Broker, delivery: Delivery, rules: AdministrationRules) -> None:
        self._broker = broker
        self._delivery = delivery
        self._rules = rules

    def handlers(self) -> dict[int, Handler]:
        """By request code."""
        return {
            RequestCode.UPDATE_AND_CREATE_TOPIC: self.put,
            RequestCode.UPDATE_AND_CREATE_TOPIC_LIST: self.put_all,
            RequestCode.DELETE_TOPIC_IN_BROKER: self.delete,
            RequestCode.GET_TOPIC_CONFIG: self.show,
            RequestCode.GET_TOPIC_STATS_INFO: self.queues,
            RequestCode.GET_SYSTEM_TOPIC_LIST_FROM_BROKER: self.system,
            RequestCode.QUERY_TOPIC_CONSUME_BY_WHO: self.groups,
            RequestCode.QUERY_CONSUME_QUEUE: self.units,
        }

    async def put(self, call: RemotingCall) -> Command:
        """UPDATE_AND_CREATE_TOPIC: a topic has these queues and permissions from now on; what is not named stays."""
        call.demand(_MANAGE)
        fields = call.fields
        read, write = fields.int32("readQueueNums"), fields.int32("writeQueueNums")
        said: dict[str, Any] = {"readQueueNums": read, "writeQueueNums": write, "perm": fields.int32("perm")}
        said |= {"order": fields.flag_or("order", False), "attributes": parsed(fields.text_or("attributes", ""))}
        sys_flag = fields.int32_or("topicSysFlag", None)
        if sys_flag is not None:
            said["topicSysFlag"] = sys_flag
        topic = self._wanted(fields.text("topic"), said)
        await self._rules.edits.put_topic(topic)
        await self._rules.announced()
        return call.ok()

    async def put_all(self, call: RemotingCall) -> Command:
        """UPDATE_AND_CREATE_TOPIC_LIST: the same of many; none is changed unless all of them make sense."""
        call.demand(_MANAGE)
        entries = json_bodies.objects(json_bodies.read(call.body), "topicConfigList")
        wanted = [self._wanted(json_bodies.text(one, "topicName"), one) for one in entries]
        if not wanted:
            raise RemotingRefusal(ResponseCode.SYSTEM_ERROR, "The request names no topic.")
        for topic in wanted:
            await self._rules.edits.put_topic(topic)
        await self._rules.announced()
        return call.ok()

    def _wanted(self, name: str, said: dict[str, Any]) -> TopicConfig:
        """A topic as it is to be; what is not `said` stays as it is. Raises RemotingRefusal, IllegalMessage.

        `attributes` are said as changes.
        """
        if name in self._rules.system_topics:
            raise RemotingRefusal(ResponseCode.SYSTEM_ERROR, f"The topic[{name}] is conflict with system topic.")
        check_topic_name(name)
        before = self._broker.topics.get(name)
        entry = {} if before is None else before.to_json()
        attributes = changed(OF_TOPICS, None if before is None else attributes_of(entry), attributes_of(said))
        try:
            topic = TopicConfig.from_json(name, entry | said | {"attributes": attributes})
        except ValueError as error:
            raise RemotingRefusal(ResponseCode.SYSTEM_ERROR, str(error)) from error
        if not (0 < topic.read_queues <= _MOST_QUEUES and 0 < topic.write_queues <= _MOST_QUEUES and topic.perm <= 7):
            raise RemotingRefusal(
                ResponseCode.SYSTEM_ERROR, f"A topic has 1 to {_MOST_QUEUES} queues and a perm of 0 to 7."
            )
        return topic

    async def delete(self, call: RemotingCall) -> Command:
        """DELETE_TOPIC_IN_BROKER; its messages stay until their files expire."""
        call.demand(_MANAGE)
        name = call.fields.text("topic")
        if name in self._rules.system_topics:
            raise RemotingRefusal(ResponseCode.SYSTEM_ERROR, f"The topic[{name}] is a system topic: it stays.")
        await self._rules.edits.delete_topic(name)
        return call.ok()

    def show(self, call: RemotingCall) -> Command:
        """GET_TOPIC_CONFIG."""
        call.demand(_VIEW)
        return call.ok(body=dumps(self._known(call.fields.text("topic")).to_json()))

    async def queues(self, call: RemotingCall) -> Command:
        """GET_TOPIC_STATS_INFO: where each queue begins and ends, and when it was written last."""
        call.demand(_VIEW)
        topic, store = self._known(call.fields.text("topic")), self._broker.store
        table: dict[QueueKey, Any] = {}
        slices = Slices(store.timers)
        for number in range(max(topic.read_queues, topic.write_queues)):
            queue = store.queue(topic.name, number)
            low, high = (0, 0) if queue is None else (queue.readable_begin, queue.max_offset)
            written = 0 if low >= high else self.store_time(topic.name, number, high - 1)
            table[QueueKey(topic.name, self._rules.broker_name, number)] = {
                "lastUpdateTimestamp": written,
                "maxOffset": high,
                "minOffset": low,
            }
            await slices.pause()
        return call.ok(body=await sliced({"offsetTable": table}, slices))

    def system(self, call: RemotingCall) -> Command:
        """GET_SYSTEM_TOPIC_LIST_FROM_BROKER."""
        return call.ok(body=dumps({"topicList": self._rules.system_topics}))

    async def groups(self, call: RemotingCall) -> Command:
        """QUERY_TOPIC_CONSUME_BY_WHO: groups that have a position in a topic."""
        call.demand(_VIEW)
        topic, ledger = call.fields.text("topic"), self._delivery.ledger
        found, slices = [], Slices(self._broker.store.timers)
        for group in ledger.groups():
            if ledger.places(group, topic):
                found.append(group)
            await slices.pause()
        return call.ok(body=await sliced({"groupList": sorted(found)}, slices))

    def units(self, call: RemotingCall) -> Command:
        """QUERY_CONSUME_QUEUE: some entries of a queue."""
        call.demand(_VIEW)
        fields = call.fields
        queue = self._broker.store.queue(fields.text("topic"), fields.int32("queueId"))
        if queue is None:
            raise RemotingRefusal(ResponseCode.SYSTEM_ERROR, f"{fields.text('topic')} has no such queue with messages")
        first = queue.readable_begin
        begin = max(fields.int64_or("index", first), first)
        count = min(max(fields.int32_or("count", 32), 0), _MOST_UNITS)
        found = [queue.unit(at) for at in range(begin, min(begin + count, queue.max_offset))]
        data = [
            {
                "eval": False,
                "physicOffset": unit.physical_offset,
                "physicSize": unit.size,
                "tagsCode": unit.tags_code,
            }
            for unit in found
            if unit is not None
        ]
        told = {"maxQueueIndex": queue.max_offset, "minQueueIndex": first, "queueData": data}
        return call.ok(body=dumps(told))

    def store_time(self, topic: str, number: int, offset: int) -> int:
        """When the message at an offset was stored, ms; 0 where it cannot be read."""
        store = self._broker.store
        queue = store.queue(topic, number)
        unit = None if queue is None else queue.unit(offset)
        data = None if unit is None else read_whole(store, unit.physical_offset, unit.size)
        return 0 if data is None else decode_record(data, verify=False).store_timestamp

    def _known(self, name: str) -> TopicConfig:
        topic = self._broker.topics.get(name)
        if topic is None:
            raise RemotingRefusal(ResponseCode.TOPIC_NOT_EXIST, f"topic[{name}] not exist")
        return topic
