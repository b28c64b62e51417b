"""Whole tables, as a Java slave copies them from its master, and as tools read them: topics, groups, positions, delays.

All have a dataVersion: a 5.x slave fails without. It says the same as long as the content does.
"""

import zlib
from collections.abc import Mapping
from typing import Any

from tandemmq.common.access.needs import Action, Need
from tandemmq.common.wire.remoting.codes import RequestCode
from tandemmq.common.wire.remoting.command import Command
from tandemmq.common.wire.remoting.java_objects import dumps
from tandemmq.store.broker.broker import Broker
from tandemmq.store.delivery.delivery import Delivery
from tandemmq.store.fronts.remoting.administration.rules import AdministrationRules
from tandemmq.store.fronts.remoting.call import Handler, RemotingCall

_VIEW = Need(Action.VIEW)
_NO_VERSION = {"counter": 0, "stateVersion": 0, "timestamp": 0}


class TableAnswers:
    """Answers with them."""

    def __init__(self, broker: Broker, delivery: Delivery, rules: AdministrationRules) -> None:
        self._broker = broker
        self._delivery = delivery
        self._rules = rules

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

    def topics(self, call: RemotingCall) -> Command:
        """GET_ALL_TOPIC_CONFIG. Attributes stay here: slaves of 5.3.2 and 5.3.3 fail on them."""
        call.demand(_VIEW)
        table = {one.name: {**one.to_json(), "attributes": {}} for one in self._broker.topics.all()}
        return call.ok(
            body=self._versioned(
                {
                    "mappingDataVersion": _NO_VERSION,
                    "topicConfigTable": table,
                    "topicQueueMappingDetailMap": {},
                    "topicQueueMappingInfoMap": {},
                }
            )
        )

    def groups(self, call: RemotingCall) -> Command:
        """GET_ALL_SUBSCRIPTIONGROUP_CONFIG."""
        call.demand(_VIEW)
        table = {one.name: {**one.to_json(), "attributes": {}} for one in self._delivery.groups.all()}
        return call.ok(body=self._versioned({"forbiddenTable": {}, "subscriptionGroupTable": table}))

    def offsets(self, call: RemotingCall) -> Command:
        """GET_ALL_CONSUMER_OFFSET: the next offset of each queue, by `topic@group`."""
        call.demand(_VIEW)
        table: dict[str, dict[int, int]] = {}
        for progress in self._delivery.ledger.all():
            place = progress.place
            table.setdefault(f"{place.topic}@{place.group}", {})[place.queue] = progress.cursor
        return call.ok(body=self._versioned({"offsetTable": table}))

    def delays(self, call: RemotingCall) -> Command:
        """GET_ALL_DELAY_OFFSET: delays are this broker's own, and no slave has to know of them; but never empty."""
        call.demand(_VIEW)
        return call.ok(body=self._versioned({"offsetTable": {}}))

    def timer_check(self, call: RemotingCall) -> Command:
        """GET_TIMER_CHECK_POINT: how far timers are delivered, so that a slave that takes over goes on there."""
        call.demand(_VIEW)
        return call.ok(body=self._delivery.timer_check().longs)

    def timer_counts(self, call: RemotingCall) -> Command:
        """GET_TIMER_METRICS: messages that wait, by topic. They are not counted by topic here: our metrics have all."""
        call.demand(_VIEW)
        return call.ok(body=self._versioned({"timingCount": {}}))

    def _versioned(self, document: Mapping[str, Any]) -> bytes:
        """The document with a version that is its content's: a checksum as the counter."""
        state = self._broker.store.replica.mastership.epoch
        checksum = zlib.crc32(dumps(document))
        version = {"counter": checksum, "stateVersion": state, "timestamp": self._rules.started_ms}
        return dumps({"dataVersion": version, **document})
