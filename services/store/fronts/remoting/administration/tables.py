"""Whole tables, as a Java slave copies them from its master, and as tools read them.

All have a dataVersion: a 5.x slave fails without. It says the same as long as the content does.
"""

from collections.abc import Awaitable, Callable, Iterable
from typing import Any

from tandemmq.common.access.needs import Action, Need
from tandemmq.common.slices import Slices
from tandemmq.common.wire.remoting.codes import RequestCode
from tandemmq.common.wire.remoting.command import Command
from tandemmq.store.broker.broker import Broker
from tandemmq.store.broker.topics import TopicConfig
from tandemmq.store.delivery.delivery import Delivery
from tandemmq.store.delivery.members.groups import GroupConfig
from tandemmq.store.fronts.remoting.administration.rules import AdministrationRules
from tandemmq.store.fronts.remoting.administration.sliced import Document, VersionedTable
from tandemmq.store.fronts.remoting.call import Handler, RemotingCall

_VIEW = Need(Action.VIEW)
_NO_VERSION = {"counter": 0, "stateVersion": 0, "timestamp": 0}


class TableAnswers:
    """Answers with them."""

    def __init__(self, broker: Broker, delivery: Delivery, rules: AdministrationRules) -> None:
        self._broker = broker
        self._delivery = delivery
        self._rules = rules
        timers = broker.store.timers
        self._topics = VersionedTable(timers, self._all_topics, broker.topics.changed)
        self._groups = VersionedTable(timers, self._all_groups, delivery.groups.changed)
        self._offsets = VersionedTable(timers, self._all_offsets)
        self._delays = VersionedTable(timers, self._all_delays)
        self._timer_counts = VersionedTable(timers, _nothing("timingCount"))

    def handlers(self) -> dict[int, Handler]:
        """By request code."""
        return {
            RequestCode.GET_ALL_TOPIC_CONFIG: self.topics,
            RequestCode.GET_ALL_SUBSCRIPTIONGROUP_CONFIG: self.groups,
            RequestCode.GET_ALL_CONSUMER_OFFSET: self.offsets,
            RequestCode.GET_ALL_DELAY_OFFSET: self.delays,
            RequestCode.GET_TIMER_CHECK_POINT: self.timer_check,
            RequestCode.GET_TIMER_METRICS: self.timer_counts,
        }

    async def topics(self, call: RemotingCall) -> Command:
        """GET_ALL_TOPIC_CONFIG. Attributes stay here: slaves of 5.3.2 and 5.3.3 fail on them."""
        return await self._answer(call, self._topics)

    async def groups(self, call: RemotingCall) -> Command:
        """GET_ALL_SUBSCRIPTIONGROUP_CONFIG."""
        return await self._answer(call, self._groups)

    async def offsets(self, call: RemotingCall) -> Command:
        """GET_ALL_CONSUMER_OFFSET: the next offset of each queue, by `topic@group`."""
        return await self._answer(call, self._offsets)

    async def delays(self, call: RemotingCall) -> Command:
        """GET_ALL_DELAY_OFFSET: how far each level is delivered. A slave of Java that takes over goes on there."""
        return await self._answer(call, self._delays)

    def timer_check(self, call: RemotingCall) -> Command:
        """GET_TIMER_CHECK_POINT: how far timers are delivered, so that a slave that takes over goes on there."""
        call.demand(_VIEW)
        return call.ok(body=self._delivery.timer_check().longs)

    async def timer_counts(self, call: RemotingCall) -> Command:
        """GET_TIMER_METRICS: messages that wait, by topic. They are not counted by topic here: our metrics have all."""
        return await self._answer(call, self._timer_counts)

    async def _answer(self, call: RemotingCall, table: VersionedTable) -> Command:
        call.demand(_VIEW)
        return call.ok(body=await table.body(self._broker.store.replica.mastership.epoch, self._rules.started_ms))

    # -- what they say ------------------------------------------------------------------------------------------------

    async def _all_topics(self, slices: Slices) -> Document:
        return {
            "mappingDataVersion": _NO_VERSION,
            "topicConfigTable": await _by_name(self._broker.topics.all(), slices),
            "topicQueueMappingDetailMap": {},
            "topicQueueMappingInfoMap": {},
        }

    async def _all_groups(self, slices: Slices) -> Document:
        return {"forbiddenTable": {}, "subscriptionGroupTable": await _by_name(self._delivery.groups.all(), slices)}

    async def _all_offsets(self, slices: Slices) -> Document:
        await self._delivery.known()
        table: dict[str, dict[int, int]] = {}
        for progress in self._delivery.ledger.all():
            place = progress.place
            table.setdefault(f"{place.topic}@{place.group}", {})[place.queue] = progress.cursor
            await slices.pause()
        return {"offsetTable": table}

    async def _all_delays(self, _slices: Slices) -> Document:
        await self._delivery.known()
        return {"offsetTable": dict(self._delivery.ledger.levels)}


async def _by_name(entries: Iterable[TopicConfig | GroupConfig], slices: Slices) -> dict[str, dict[str, Any]]:
    table = {}
    for one in list(entries):
        table[one.name] = {**one.to_json(), "attributes": {}}
        await slices.pause()
    return table


def _nothing(name: str) -> Callable[[Slices], Awaitable[Document]]:
    async def document(_slices: Slices) -> Document:
        return {name: {}}

    return document
