"""The broker itself: its numbers and settings, and what tools have it do that the store does by itself."""

import shutil
import time

from tandemmq.common.access.needs import Action, Need
from tandemmq.common.wire.remoting.codes import RequestCode, ResponseCode
from tandemmq.common.wire.remoting.command import Command
from tandemmq.common.wire.remoting.java_objects import dumps
from tandemmq.common.wire.remoting.versions import OUR_VERSION
from tandemmq.store.broker.broker import Broker
from tandemmq.store.delivery.delivery import Delivery
from tandemmq.store.format.record import CorruptRecord, decode_record
from tandemmq.store.format.unit import SCHEDULE_TOPIC
from tandemmq.store.fronts.remoting.administration.rules import AdministrationRules
from tandemmq.store.fronts.remoting.administration.traffic_history import GIVEN, STORED, Rate, TrafficKey
from tandemmq.store.fronts.remoting.call import Handler, RemotingCall
from tandemmq.store.fronts.remoting.statuses import RemotingRefusal

_VIEW = Need(Action.VIEW)
_DESCRIPTION = "V5_3_2"
"""The name of OUR_VERSION."""
_TOOLS_WANT = "filterServerNums=0\nmsgTraceTopicName=RMQ_SYS_TRACE_TOPIC\ntraceOn=true\nuseTLS=false\n"
"""Settings that we do not have, and without which mqadmin's exportConfigs of 4.9 fails."""

_NOT_COUNTED = (
    "dispatchMaxBuffer", "getMessageEntireTimeMax", "putMessageEntireTimeMax", "remainTransientStoreBufferNumbs",
    "putLatency99", "putLatency999", "putMessageFailedTimes", "EndTransactionQueueSize",
)  # fmt: skip
"""Numbers that tools want to be there: without some of them rocketmq-exporter tells nothing of the broker at all."""
_POOLS = ("send", "pull", "query", "litePull", "ack")
"""Of threads, in RocketMQ's broker."""
_ROOM = 10_000
"""Of a queue of requests."""

_LOOKS = (1, 6, 60)
"""At the counters of traffic: ten seconds, a minute, ten minutes."""


class BrokerStatus:
    """Answers about it."""

    def __init__(self, broker: Broker, delivery: Delivery, rules: AdministrationRules) -> None:
        self._broker = broker
        self._delivery = delivery
        self._rules = rules

    def handlers(self) -> dict[int, Handler]:
        """By request code."""
        return {
            RequestCode.GET_BROKER_RUNTIME_INFO: self.runtime,
            RequestCode.GET_BROKER_CONFIG: self.settings,
            RequestCode.UPDATE_BROKER_CONFIG: self.change,
            RequestCode.GET_BROKER_HA_STATUS: self.replication,
            RequestCode.VIEW_BROKER_STATS_DATA: self.rates,
            RequestCode.CLEAN_EXPIRED_CONSUMEQUEUE: self.done,
            RequestCode.CLEAN_UNUSED_TOPIC: self.done,
            RequestCode.DELETE_EXPIRED_COMMITLOG: self.done,
        }

    def runtime(self, call: RemotingCall) -> Command:
        """GET_BROKER_RUNTIME_INFO. What is not counted here is 0: tools want their texts to be there."""
        call.demand(_VIEW)
        store = self._broker.store
        begin, end = store.commit_log.min_offset, store.commit_log.max_offset
        disk = shutil.disk_usage(store.config.store_path_root_dir)
        ratio = f"{disk.used / (disk.used + disk.free):.4f}"
        seconds = max(int(time.time() * 1000) - self._rules.started_ms, 0) // 1000
        days, hours, minutes = seconds // 86_400, seconds // 3_600 % 24, seconds // 60 % 60
        told: dict[str, object] = {
            "brokerVersion": OUR_VERSION,
            "brokerVersionDesc": _DESCRIPTION,
            "bootTimestamp": self._rules.started_ms,
            "runtime": f"[ {days} days, {hours} hours, {minutes} minutes, {seconds % 60} seconds ]",
            "brokerActive": "true" if store.writable else "false",
            "commitLogMinOffset": begin,
            "commitLogMaxOffset": end,
            "dispatchBehindBytes": max(end - store.dispatched_offset, 0),
            "remainHowManyDataToFlush": f"{max(end - store.flushed_offset, 0)} B",
            "earliestMessageTimeStamp": self._oldest_ms(),
            "commitLogDiskRatio": ratio,
            "consumeQueueDiskRatio": ratio,
            "commitLogDirCapacity": f"Total : {_gib(disk.total)}, Free : {_gib(disk.free)}.",
            "pageCacheLockTimeMills": 0,
            "startAcceptSendRequestTimeStamp": 0,
        }
        told |= dict.fromkeys(_NOT_COUNTED, 0)
        told |= self._traffic()
        told |= self._levels()
        told["EndTransactionThreadPoolQueueCapacity"] = _ROOM
        for pool in _POOLS:
            told |= {f"{pool}ThreadPoolQueueSize": 0, f"{pool}ThreadPoolQueueHeadWaitTimeMills": 0}
            told[f"{pool}ThreadPoolQueueCapacity"] = _ROOM
        return call.ok(body=dumps({"table": {name: str(value) for name, value in told.items()}}))

    def _levels(self) -> dict[str, object]:
        """By delay level: how far it is delivered, and how far it goes."""
        told: dict[str, object] = {}
        for level, offset in self._delivery.ledger.levels.items():
            queue = self._broker.store.queue(SCHEDULE_TOPIC, level - 1)
            told[f"scheduleMessageOffset_{level}"] = f"{offset},{0 if queue is None else queue.max_offset}"
        return told

    def _traffic(self) -> dict[str, object]:
        """What came in and went out: messages a second in ten seconds, a minute and ten minutes, and in all."""
        traffic, stored = self._rules.traffic, self._rules.traffic.total(STORED)
        told: dict[str, object] = dict.fromkeys(("getTotalTps", "getFoundTps", "getMissTps"), "0.0 0.0 0.0")
        told |= {
            "putMessageTimesTotal": stored.messages,
            "putMessageSizeTotal": stored.size,
            "putMessageAverageSize": stored.size / max(stored.messages, 1),
            "putMessageDistributeTime": "[<=0ms]:0",
        }
        for key, what, spellings in ((STORED, "Put", ("put",)), (GIVEN, "Get", ("getTransfered", "getTransferred"))):
            rates = " ".join(str(traffic.lately(key, looks)) for looks in _LOOKS)
            told |= {f"{spelling}Tps": rates for spelling in spellings}  # the latter as 5.3.3 spells it
            days = traffic.days(key)
            told[f"msg{what}TotalTodayNow"] = days.now
            told[f"msg{what}TotalTodayMorning"] = days.this_morning
            told[f"msg{what}TotalYesterdayMorning"] = days.yesterday_morning
        return told

    def _oldest_ms(self) -> int:
        """When the oldest message was stored; -1 where there is none."""
        record = self._broker.store.read_record(self._broker.store.commit_log.min_offset)
        try:
            return -1 if record is None else decode_record(record, verify=False).store_timestamp
        except CorruptRecord:
            return -1

    def settings(self, call: RemotingCall) -> Command:
        """GET_BROKER_CONFIG: the store's settings; secrets are in files of their own."""
        call.demand(Need(Action.MANAGE))
        version = dumps({"counter": 0, "stateVersion": 0, "timestamp": self._rules.started_ms}).decode()
        return call.ok({"version": version}, (self._rules.properties() + _TOOLS_WANT).encode())

    def change(self, call: RemotingCall) -> Command:
        """UPDATE_BROKER_CONFIG: refused; a setting has one place, and the file says what runs."""
        call.demand(Need(Action.MANAGE))
        raise RemotingRefusal(
            ResponseCode.NO_PERMISSION,
            "settings of this broker cannot be changed while it runs: change broker.conf and start it again",
        )

    def replication(self, call: RemotingCall) -> Command:
        """GET_BROKER_HA_STATUS: as far as the store knows; `tandem replica list` knows each of them."""
        call.demand(_VIEW)
        store = self._broker.store
        body = {
            "haClientRuntimeInfo": {
                "lastReadTimestamp": 0,
                "lastWriteTimestamp": 0,
                "masterFlushOffset": 0,
                "maxOffset": 0,
                "transferredByteInSecond": 0,
            },
            "haConnectionInfo": [],
            "inSyncSlaveNums": self._broker.acknowledgement.transfer.in_sync,
            "master": not store.replica.mastership.is_slave,
            "masterCommitLogMaxOffset": store.commit_log.max_offset,
        }
        return call.ok(body=dumps(body))

    def rates(self, call: RemotingCall) -> Command:
        """VIEW_BROKER_STATS_DATA: what came in or went out in a minute, an hour and a day. Tools go on without."""
        call.demand(_VIEW)
        name, said = call.fields.text("statsName"), call.fields.text("statsKey")
        key = self._traffic_key(name, said)
        rates = None if key is None else self._rules.traffic.rates(key)
        if rates is None:
            raise RemotingRefusal(ResponseCode.SYSTEM_ERROR, f"The stats <{name}> <{said}> not exist")
        windows = ("statsMinute", "statsHour", "statsDay")
        sizes = name.endswith("_SIZE")
        return call.ok(body=dumps({window: _told(rate, sizes) for window, rate in zip(windows, rates, strict=True)}))

    def _traffic_key(self, name: str, said: str) -> TrafficKey | None:
        """What is asked for; None for what is not counted here."""
        topic, _, group = said.partition("@")
        if name in ("TOPIC_PUT_NUMS", "TOPIC_PUT_SIZE"):
            return TrafficKey(said)
        if name in ("GROUP_GET_NUMS", "GROUP_GET_SIZE") and topic and group:
            return TrafficKey(topic, group)
        if name == "SNDBCK_PUT_NUMS" and topic and group:
            return TrafficKey(topic, group, back=True)
        if said == self._rules.cluster:
            return {"BROKER_PUT_NUMS": STORED, "BROKER_GET_NUMS": GIVEN}.get(name)
        return None

    def done(self, call: RemotingCall) -> Command:
        """What the store does by itself: expired files and queues go, and it needs no telling."""
        call.demand(Need(Action.MANAGE))
        return call.ok()


def _gib(size: int) -> str:
    return f"{size / (1 << 30):.1f} GiB"


def _told(rate: Rate, sizes: bool) -> dict[str, float]:
    """As RocketMQ's ``BrokerStatsItem``; the average is that of a message."""
    total = rate.counts.size if sizes else rate.counts.messages
    per_second = total / rate.seconds if rate.seconds > 0 else 0.0
    return {"avgpt": total / max(rate.counts.messages, 1), "sum": total, "tps": per_second}
