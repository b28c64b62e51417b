"""How far groups are: positions and ends of their queues, times, and positions that are set."""

import time
from datetime import datetime
from typing import Any

from tandemmq.common.access.needs import Action, Need
from tandemmq.common.access.needs import group as use_group
from tandemmq.common.slices import Slices
from tandemmq.common.wire.remoting.codes import RequestCode, ResponseCode
from tandemmq.common.wire.remoting.command import Command
from tandemmq.common.wire.remoting.java_objects import QueueKey, dumps
from tandemmq.store.broker.broker import Broker
from tandemmq.store.delivery.delivery import Delivery
from tandemmq.store.delivery.journal.facts import Place
from tandemmq.store.delivery.members.groups import GroupConfig
from tandemmq.store.fronts.remoting.administration.rules import AdministrationRules
from tandemmq.store.fronts.remoting.administration.sliced import sliced
from tandemmq.store.fronts.remoting.administration.topic_admin import TopicAdmin
from tandemmq.store.fronts.remoting.call import Handler, RemotingCall
from tandemmq.store.fronts.remoting.statuses import RemotingRefusal

_VIEW = Need(Action.VIEW)


class Consumption:
    """Answers about it."""

    def __init__(self, broker: Broker, delivery: Delivery, topics: TopicAdmin, rules: AdministrationRules) -> None:
        self._broker = broker
        self._delivery = delivery
        self._topics = topics
        self._rules = rules

    def handlers(self) -> dict[int, Handler]:
        """By request code."""
        return {
            RequestCode.GET_CONSUME_STATS: self.stats,
            RequestCode.GET_BROKER_CONSUME_STATS: self.all_stats,
            RequestCode.INVOKE_BROKER_TO_RESET_OFFSET: self.reset,
            RequestCode.CLONE_GROUP_OFFSET: self.clone,
            RequestCode.QUERY_CONSUME_TIME_SPAN: self.time_spans,
        }

    async def stats(self, call: RemotingCall) -> Command:
        """GET_CONSUME_STATS: every queue of a group's topics, or of one of them."""
        group = call.fields.text("consumerGroup")
        call.demand(use_group(group, Action.VIEW))
        listed = (call.fields.text_or("topicList", "") or "").split(";")
        topics = {one for one in (*listed, call.fields.text_or("topic", "")) if one}
        slices = self._slices()
        table = await self._table(group, topics, slices)
        return call.ok(body=await sliced(await self._stats(group, table, slices), slices))

    async def all_stats(self, call: RemotingCall) -> Command:
        """GET_BROKER_CONSUME_STATS: the same of all groups."""
        call.demand(_VIEW)
        found = []
        total, slices = 0, self._slices()
        for group in self._delivery.ledger.groups():
            table = await self._table(group, set(), slices)
            lag = sum(one["brokerOffset"] - one["consumerOffset"] for one in table.values())
            total += lag
            found.append({group: [await self._stats(group, table, slices)] if table else []})
        body = {
            "brokerAddr": self._rules.address,
            "consumeStatsList": found,
            "totalDiff": total,
            "totalInflightDiff": 0,
        }
        return call.ok(body=await sliced(body, slices))

    async def _stats(self, group: str, table: dict[QueueKey, Any], slices: Slices) -> dict[str, object]:
        topics = {key.topic for key in table}
        rate = await self._rules.traffic.given_per_second(group, topics, slices)
        return {"consumeTps": rate, "offsetTable": table}

    def _slices(self) -> Slices:
        return Slices(self._broker.store.timers)

    async def _table(self, group: str, topics: set[str], slices: Slices) -> dict[QueueKey, Any]:
        table: dict[QueueKey, Any] = {}
        for progress in self._delivery.ledger.places(group):
            place = progress.place
            await slices.pause()
            if topics and place.topic not in topics:
                continue
            queue = self._broker.store.queue(place.topic, place.queue)
            begin, end = (0, 0) if queue is None else (queue.readable_begin, queue.max_offset)
            cursor = max(progress.cursor, begin)  # what has expired waits for nobody
            last = self._topics.store_time(place.topic, place.queue, cursor - 1) if cursor > begin else 0
            table[QueueKey(place.topic, self._rules.broker_name, place.queue)] = {
                "brokerOffset": end,
                "consumerOffset": cursor,
                "lastTimestamp": last,
                "pullOffset": cursor,
            }
        return table

    async def time_spans(self, call: RemotingCall) -> Command:
        """QUERY_CONSUME_TIME_SPAN: when the first and last message of each queue came, and the last one dealt with.

        Milliseconds since 1970; 0 where there is no message.
        """
        call.demand(_VIEW)
        group, name = call.fields.text("group"), call.fields.text("topic")
        topic = self._broker.topics.get(name)
        if topic is None:
            raise RemotingRefusal(ResponseCode.TOPIC_NOT_EXIST, f"topic[{name}] not exist")
        spans, slices = [], self._slices()
        for queue in range(topic.write_queues):
            spans.append(self._time_span(Place(group, name, queue)))
            await slices.pause()
        return call.ok(body=await sliced({"consumeTimeSpanSet": spans}, slices))

    def _time_span(self, place: Place) -> dict[str, object]:
        queue, progress = self._broker.store.queue(place.topic, place.queue), self._delivery.ledger.progress(place)
        first, end = (0, 0) if queue is None else (queue.readable_begin, queue.max_offset)

        def time_ms(offset: int) -> int:
            return self._topics.store_time(place.topic, place.queue, offset) if first <= offset < end else 0

        oldest = time_ms(first)
        cursor = 0 if progress is None else progress.cursor
        waits = time_ms(max(cursor, first))
        times = {
            "minTimeStamp": oldest,
            "maxTimeStamp": time_ms(end - 1),
            "consumeTimeStamp": time_ms(cursor - 1) if cursor > first else oldest,
        }
        key = QueueKey(place.topic, self._rules.broker_name, place.queue)
        return {
            **times,
            **{f"{name}Str": _readable(ms) for name, ms in times.items()},
            "delayTime": max(int(time.time() * 1000) - waits, 0) if waits else 0,
            "messageQueue": key.to_json(),
        }

    async def reset(self, call: RemotingCall) -> Command:
        """INVOKE_BROKER_TO_RESET_OFFSET: a group goes on at a time, or at an offset of one queue; -1: at the end.

        Consumers need not be there: their next pull is answered with the new position.
        """
        fields = call.fields
        name, topic = fields.text("group"), fields.text("topic")
        call.demand(Need(Action.MANAGE))
        if self._delivery.groups.get(name) is None:
            raise RemotingRefusal(ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST, f"subscription group {name} not exist")
        wanted = await self._wanted(topic, fields.int64("timestamp"), fields.int32_or("queueId", -1), call)
        if not fields.flag_or("isForce", True):
            now = {one.place.queue: one.cursor for one in self._delivery.ledger.places(name, topic)}
            wanted = {queue: min(offset, now.get(queue, offset)) for queue, offset in wanted.items()}
        await self._delivery.reset(name, topic, wanted)
        table = {QueueKey(topic, self._rules.broker_name, queue): offset for queue, offset in wanted.items()}
        return call.ok(body=dumps({"offsetTable": table}))

    async def _wanted(self, topic: str, time_ms: int, queue: int, call: RemotingCall) -> dict[int, int]:
        """New positions by queue. Raises NoSuchQueue and its kinds."""
        offset, at = call.fields.int64_or("offset", None), max(time_ms, 0)
        if queue < 0:
            states = await self._broker.offsets(topic, at)
        else:
            states = [self._broker.offsets_of(topic, queue, at)]
            if offset is not None and offset >= 0:
                return {queue: offset}
        return {one.queue_id: one.max_offset if time_ms < 0 else (one.at_time or 0) for one in states}

    async def clone(self, call: RemotingCall) -> Command:
        """CLONE_GROUP_OFFSET: one group stands where another does; it is made if need be."""
        call.demand(Need(Action.MANAGE))
        fields = call.fields
        source, target = fields.text("srcGroup"), fields.text("destGroup")
        wanted = fields.text_or("topic", "")
        if self._delivery.groups.get(target) is None:
            await self._rules.edits.put_group(GroupConfig(target))
        topics = {one.place.topic for one in self._delivery.ledger.places(source)}
        for topic in sorted(one for one in topics if wanted in ("", one)):
            places = self._delivery.ledger.places(source, topic)
            await self._delivery.reset(target, topic, {one.place.queue: one.cursor for one in places})
        return call.ok()


def _readable(ms: int) -> str:
    """A time as RocketMQ's tools print it, in this machine's zone: ``2026-11-22#15:02:50:489``."""
    return f"{datetime.fromtimestamp(ms // 1000).astimezone():%Y-%m-%d#%H:%M:%S}:{ms % 1000:03}"
