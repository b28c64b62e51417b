"""The settings of the store, under RocketMQ's names where RocketMQ has the setting.

Two profiles give defaults: `server`, RocketMQ's own, and `embedded`, a small store under ./data for a laptop or a test.
"""

import socket
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from enum import StrEnum
from pathlib import Path
from typing import Any, ClassVar

from tandemmq.common.calling.addresses import check_address, host_port
from tandemmq.common.net.remoting.limits import RemotingLimits
from tandemmq.common.serving.grpc_server import memory_budget
from tandemmq.common.settings import default_ports
from tandemmq.common.settings.broker_role import BrokerRole
from tandemmq.common.settings.client_port_settings import ClientPortSettings, TlsMode
from tandemmq.common.settings.server_settings import GrpcTransport
from tandemmq.common.settings.settings import setting
from tandemmq.common.settings.settings_profiles import Profiles, load_profiled
from tandemmq.store.broker.group_transfer import ReplicationRules
from tandemmq.store.broker.postponing import DelayRules
from tandemmq.store.broker.send import SendRules
from tandemmq.store.broker.slave_reads import SlaveReadRules, lag_max
from tandemmq.store.delivery.receiving.receive_rules import ReceiveRules
from tandemmq.store.delivery.transactions.checking import TransactionRules
from tandemmq.store.exposure import check_exposure
from tandemmq.store.format.host import Host, IllegalHost
from tandemmq.store.fronts.native.limits import PullLimits, ServiceLimits
from tandemmq.store.fronts.remoting.rules import RemotingRules
from tandemmq.store.fronts.rocketmq5.front_rules import FrontRules
from tandemmq.store.log.config import LogSettings, StoreConfig
from tandemmq.store.other_settings import WITHOUT_EFFECT
from tandemmq.store.remoting_settings import RemotingSettings

_KIB, _MIB, _GIB = 1 << 10, 1 << 20, 1 << 30
_BATCH_ROOM = 1 * _MIB
"""What a gRPC message of the largest body holds besides it."""

_LOG = StoreConfig(Path())
"""What the log layer does unless it is told otherwise: its defaults stand in `StoreConfig`, and nowhere else."""

_UNITS_MS = {"s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}


class FlushDiskType(StrEnum):
    """When a message is acknowledged."""

    ASYNC_FLUSH = "ASYNC_FLUSH"
    SYNC_FLUSH = "SYNC_FLUSH"


class WalkerChoice(StrEnum):
    """When the compiled walker is loaded, which has ten times the speed."""

    AUTO = "auto"
    ALWAYS = "always"
    NEVER = "never"


class CoreChoice(StrEnum):
    """Whether plain calls go through the compiled core."""

    AUTO = "auto"
    ALWAYS = "always"
    NEVER = "never"


def _delay_levels(text: str) -> tuple[int, ...]:
    """`1s 5m` as milliseconds. Raises ValueError."""
    return tuple(int(level[:-1]) * _UNITS_MS[level[-1:]] for level in text.split())


def _check_delay_levels(text: str) -> str | None:
    try:
        return None if _delay_levels(text) else "at least one level"
    except (KeyError, ValueError):
        return "levels like `1s 5s 1m 2h 1d`, separated by blanks"


def _check_hours(hours: tuple[str, ...]) -> str | None:
    good = bool(hours) and all(hour.isdigit() and int(hour) < 24 for hour in hours)
    return None if good else "hours of the day, 0 to 23, separated by ;"


def _check_ip(text: str | None) -> str | None:
    try:
        Host(text or "", 0)
    except IllegalHost:
        return "an IP address"
    return None


@dataclass(frozen=True, kw_only=True)
class StoreSettings(LogSettings, RemotingSettings, ClientPortSettings):
    """All settings of the store service."""

    # -- who and where ----------------------------------------------------------------------------------------------
    broker_cluster_name: str = setting("DefaultCluster", "Cluster this broker belongs to; a label of the metrics.")
    broker_name: str = setting(socket.gethostname(), "Name of this broker; a label of the metrics.")
    broker_ip1: str | None = setting(
        None,
        "IP address that stands in records and message ids as the store's. Empty: grpcHost, or one of the machine's.",
        name="brokerIP1",
        check=_check_ip,
    )
    grpc_port: int = setting(
        default_ports.STORE, "Port on which gRPC is served; 0 takes any free one.", low=0, high=65535
    )
    grpc_max_message_size: int = setting(
        16 * _MIB,
        "Largest gRPC message received or sent; must leave room for a whole batch.",
        unit="bytes",
        low=64 * _KIB,
        high=(1 << 31) - 1,
    )
    metrics_port: int = setting(
        default_ports.STORE_METRICS, "Port of the metrics endpoint (/metrics); 0 takes any free one.", low=0, high=65535
    )
    internal_host: str = setting(
        "127.0.0.1",
        "Ours: address for the node's own replicator and metasync. Beyond loopback only with tlsServerTrustCertPath, "
        "or internalOpen.",
    )
    internal_port: int = setting(
        default_ports.INTERNAL, "Ours: port for the node's own services; 0 takes any free one.", low=0, high=65535
    )
    internal_open: bool = setting(
        False,
        "Ours: lets internalHost be another address than loopback although clients show no certificates; for a network "
        "that is private, as that of a compose project.",
    )
    metasync_address: str | None = setting(
        None,
        "Ours: where the node's metasync serves gRPC, host:port. Empty: the store keeps its topics in "
        "config/topics.json itself.",
        check=check_address,
    )
    metasync_tls_trust_cert_path: Path | None = setting(
        None, "Certificates (PEM) of those who sign metasync's; when set, it is spoken to with TLS."
    )
    store_path_root_dir: Path = setting(Path("~/store").expanduser(), "The store directory.")
    store_path_commit_log: Path | None = setting(
        None,
        "Where the commit log lies; can only be <storePathRootDir>/commitlog, and is accepted for RocketMQ's sake.",
    )

    # -- replication ------------------------------------------------------------------------------------------------
    broker_role: BrokerRole = setting(
        BrokerRole(_LOG.broker_role),
        "ASYNC_MASTER acknowledges without its slaves, SYNC_MASTER when enough of them have the message, SLAVE takes "
        "messages from its master only. A promotion or demotion wins over it (docs/replication.md).",
    )
    broker_id: int = setting(0, "0 for a master, another number for each slave.", low=0)
    slave_timeout: int = setting(3_000, "SYNC_MASTER: answer FLUSH_SLAVE_TIMEOUT after this long.", unit="ms", low=1)
    ha_slave_fallbehind_max: int = setting(
        256 * _MIB,
        "SYNC_MASTER: slaves with a larger lag are not waited for (SLAVE_NOT_AVAILABLE).",
        unit="bytes",
        low=1,
    )
    min_in_sync_replicas: int = setting(
        1,
        "SYNC_MASTER: with fewer replicas in sync, this one included, nothing is stored (IN_SYNC_REPLICAS_NOT_ENOUGH).",
        low=1,
    )
    slave_read_enable: bool = setting(
        False, "Whether pulls are advised to go to a slave: by a master that cannot keep up, by a slave that is asked."
    )
    offset_check_in_slave: bool = setting(
        False, "A slave corrects the offsets of pulls beyond its queues; else it leaves them, as it may be behind."
    )
    access_message_in_memory_max_ratio: int = setting(
        40,
        "A master whose consumer lags by more than this share of the memory advises a slave.",
        unit="%",
        low=0,
        high=100,
    )

    # -- messages and topics ----------------------------------------------------------------------------------------
    message_delay_level: str = setting(
        "1s 5s 10s 30s 1m 2m 3m 4m 5m 6m 7m 8m 9m 10m 20m 30m 1h 2h",
        "The delay levels, from 1 on: how long a message with the property DELAY waits.",
        check=_check_delay_levels,
    )
    timer_wheel_enable: bool = setting(
        True, "Messages may ask for any delivery time (TIMER_DELIVER_MS, TIMER_DELAY_MS, TIMER_DELAY_SEC)."
    )
    timer_max_delay_sec: int = setting(
        3_456_000, "... but none further ahead. (RocketMQ: 3 days.)", unit="s", low=1, high=10 * 366 * 86_400
    )
    timer_precision_ms: int = setting(
        1_000,
        "Delivery times are rounded down to such steps in TIMER_OUT_MS, by which a Java broker delivers. "
        "We keep to the millisecond.",
        unit="ms",
        low=1,
        high=60_000,
    )
    transaction_time_out: int = setting(
        6_000,
        "A half message is asked about for the first time after this long, unless it says so itself "
        "(CHECK_IMMUNITY_TIME_IN_SECONDS).",
        unit="ms",
        low=1,
        high=86_400_000,
    )
    transaction_check_max: int = setting(
        15,
        "After this many checks that reached a producer a half message goes to TRANS_CHECK_MAX_TIME_TOPIC.",
        low=1,
        high=1_000,
    )
    transaction_check_interval: int = setting(
        30_000, "Time between two checks of a half message.", unit="ms", low=1, high=86_400_000
    )
    auto_create_topic_enable: bool = setting(True, "The first message to a topic creates it.")
    trace_topic_enable: bool = setting(
        False, "The first trace that a client writes creates RMQ_SYS_TRACE_TOPIC, whatever autoCreateTopicEnable says."
    )
    deduplication_window: int = setting(
        0,
        "Ours: a message whose topic and UNIQ_KEY were stored within this time is not stored again: its sender gets "
        "the place of the first. 0: every message is stored, but for repeatedSendWindow.",
        unit="ms",
        low=0,
        high=3_600_000,
    )
    repeated_send_window: int = setting(
        60_000,
        "Ours: the same for messages of official RocketMQ 5 clients and of the Producer of tandemmq.client, where "
        "deduplicationWindow is 0. They give each send an id of its own, and repeat it when no answer comes. 0: every "
        "message is stored.",
        unit="ms",
        low=0,
        high=3_600_000,
    )
    hooks: tuple[str, ...] = setting(
        (),
        "Ours: hooks that are called around sends and deliveries, by name, in this order (docs/hooks.md). Installed "
        "packages offer them as entry points of the group tandemmq.hooks.",
    )
    default_topic_queue_nums: int = setting(
        4,
        "Read and write queues of a topic created so. (RocketMQ: 8, of which its clients ask for 4.)",
        low=1,
        high=1024,
    )

    # -- consumer groups --------------------------------------------------------------------------------------------
    auto_create_subscription_group: bool = setting(True, "The first receive or commit of a group creates it.")
    max_receive_messages: int = setting(1_024, "Ours: most messages of one receive.", low=1, high=20_000)
    max_in_flight: int = setting(
        20_000,
        "Ours: of one group in one queue: messages given out, not acknowledged, whose invisible time has not ended. "
        "Then no more are given out there. Those that a consumer asked to get again later do not count.",
        low=1,
        high=1_000_000,
    )
    max_in_flight_total: int = setting(1_000_000, "... of all groups in all queues.", low=1, high=100_000_000)
    max_held_back: int = setting(
        20_000,
        "Ours: of one group in one queue: messages that wait for others of their message group. Then nothing new is "
        "read there until some of these are dealt with.",
        low=1,
        high=1_000_000,
    )

    # -- of the log, in the words of people -------------------------------------------------------------------------
    flush_disk_type: FlushDiskType = setting(
        FlushDiskType(_LOG.flush_disk_type),
        "ASYNC_FLUSH acknowledges a message in the page cache, SYNC_FLUSH on disk; consumers see it no sooner.",
    )
    delete_when: tuple[str, ...] = setting(
        tuple(f"{hour:02}" for hour in _LOG.delete_when),
        "Hours at which expired files go, local time.",
        check=_check_hours,
    )
    compiled_walker: WalkerChoice = setting(
        WalkerChoice(_LOG.compiled_walker),
        "Ours: load the compiled log walker when there is work for it, ALWAYS at start, or NEVER.",
    )

    # -- reading ----------------------------------------------------------------------------------------------------
    max_msgs_num_batch: int = setting(64, "Most messages a query answers.", low=1)
    max_pull_messages: int = setting(32_768, "Ours: most messages an answer to a pull holds.", low=1)
    max_pull_bytes: int = setting(
        4 * _MIB, "Ours: most bytes of records such an answer holds (but always one message).", unit="bytes", low=1
    )
    send_stream_window: int = setting(256, "Ours: requests of a SendStream that may be unanswered.", low=1)

    # -- the compiled core ------------------------------------------------------------------------------------------
    compiled_core: CoreChoice = setting(
        CoreChoice.AUTO,
        "Ours: plain sends go through the compiled core where it is built. ALWAYS: the start fails where it is not.",
    )

    meant: ClassVar[Mapping[str, str]] = dict.fromkeys(
        ("port", "grpcListenPort", "grpcServerPort"),
        "grpcPort is for gRPC clients, ours and RocketMQ 5's; listenPort is for RocketMQ's classic clients",
    )

    without_effect: ClassVar[Mapping[str, str]] = WITHOUT_EFFECT | {
        "storePathConsumeQueue": "the queues lie in <storePathRootDir>/consumequeue",
        "storePathIndex": "the index lies in <storePathRootDir>/index",
        "storeCheckpoint": "it lies in <storePathRootDir>/checkpoint",
        "abortFile": "it lies in <storePathRootDir>/abort",
        "flushCommitLogTimed": "flushing is always timed or by group",
        "warmMapedFileEnable": "files are always made resident ahead of use",
        "transientStorePoolEnable": "there is one way to write the log",
        "useReentrantLockWhenPutMessage": "there is no append lock",
        "sendMessageThreadPoolNums": "there are no thread pools",
        "pullMessageThreadPoolNums": "there are no thread pools",
        "putConsumeQueueDataByFileChannel": "always so",
        "messageIndexSafe": "always so",
        "longPollingEnable": "the client asks for it in each pull",
        "destroyMapedFileIntervalForcibly": "readers are never cut off",
        "redeleteHangedFileInterval": "readers are never cut off",
        "deleteCommitLogFilesInterval": "files are removed without pauses",
        "deleteConsumeQueueFilesInterval": "files are removed without pauses",
        "maxTransferBytesOnMessageInMemory": "the client asks for a number of bytes, see maxPullBytes",
        "maxTransferCountOnMessageInMemory": "the client asks for a number of messages, see maxPullMessages",
        "maxTransferBytesOnMessageInDisk": "the client asks for a number of bytes, see maxPullBytes",
        "maxTransferCountOnMessageInDisk": "the client asks for a number of messages, see maxPullMessages",
    }

    def check(self) -> None:
        """What a message and an answer must have room for."""
        super().check()
        if self.store_path_commit_log not in (None, self.store_path_root_dir / "commitlog"):
            raise self.bad("store_path_commit_log", f"{self.store_path_root_dir / 'commitlog'}, or leaving it out")
        if (self.broker_role is BrokerRole.SLAVE) != (self.broker_id > 0):
            raise self.bad("broker_id", "0 for a master, more for a slave")
        check_exposure(
            self.internal_host,
            self.origin("internal_host"),
            asks_for_certificates=self.tls_server_trust_cert_path is not None,
            declared_private=self.internal_open,
        )
        if self.mapped_file_size_commit_log % 4096:
            raise self.bad("mapped_file_size_commit_log", "a multiple of 4096")
        if self.grpc_max_message_size < self.max_message_size + _BATCH_ROOM:
            raise self.bad("grpc_max_message_size", f"at least maxMessageSize + {_BATCH_ROOM:,}")
        if self.max_pull_bytes + self.max_message_size + _BATCH_ROOM > self.grpc_max_message_size:
            raise self.bad("max_pull_bytes", f"at most grpcMaxMessageSize - maxMessageSize - {_BATCH_ROOM:,}")

    def receive_rules(self) -> ReceiveRules:
        """The part that receives are told."""
        return ReceiveRules(
            most_messages=self.max_receive_messages,
            most_in_flight=self.max_in_flight,
            most_in_flight_in_all=self.max_in_flight_total,
            most_held_back=self.max_held_back,
            create_groups=self.auto_create_subscription_group,
        )

    def store_config(self) -> StoreConfig:
        """The part that the log layer is told."""
        return StoreConfig(
            **{field.name: getattr(self, field.name) for field in fields(LogSettings)},
            store_path_root_dir=self.store_path_root_dir,
            flush_disk_type=self.flush_disk_type.value,
            broker_role=self.broker_role.value,
            compiled_walker=self.compiled_walker.value,
            delete_when=tuple(int(hour) for hour in self.delete_when),
            message_delay_levels=_delay_levels(self.message_delay_level),
        )

    def send_rules(self) -> SendRules:
        """The part that the sender is told."""
        return SendRules(
            store_host=self.store_host(),
            max_message_size=self.max_message_size,
            file_size=self.mapped_file_size_commit_log,
            append_crc=self.enabled_append_prop_crc,
            auto_create_topics=self.auto_create_topic_enable,
            trace_topic=self.trace_topic_enable,
            queues_of_new_topics=self.default_topic_queue_nums,
            delays=self.delay_rules(),
        )

    def delay_rules(self) -> DelayRules:
        """What is to be known of messages that are delivered later."""
        return DelayRules(
            levels_ms=_delay_levels(self.message_delay_level),
            most_ms=self.timer_max_delay_sec * 1_000,
            precision_ms=self.timer_precision_ms,
            timers=self.timer_wheel_enable,
        )

    def transaction_rules(self) -> TransactionRules:
        """What is to be known of half messages."""
        return TransactionRules(
            timeout_ms=self.transaction_time_out,
            most_checks=self.transaction_check_max,
            interval_ms=self.transaction_check_interval,
            reserved_ms=self.file_reserved_time * 3_600_000,
        )

    def replication_rules(self) -> ReplicationRules:
        """The part that group transfer is told."""
        return ReplicationRules(self.slave_timeout, self.ha_slave_fallbehind_max, self.min_in_sync_replicas)

    def slave_read_rules(self) -> SlaveReadRules:
        """The part that pulls are told."""
        ratio = self.access_message_in_memory_max_ratio
        return SlaveReadRules(self.slave_read_enable, self.offset_check_in_slave, lag_max(ratio))

    def internal_server(self) -> "StoreSettings":
        """The same settings for the server on the internal port.

        With the same TLS; and always our transport, which the link to the replicator needs.
        """
        return replace(
            self,
            grpc_host=self.internal_host,
            grpc_port=self.internal_port,
            grpc_transport=GrpcTransport.FAST,
            tls_mode=TlsMode.DISABLED if self.tls_server_cert_path is None else TlsMode.ENFORCING,
            metrics_enable=False,
        )

    def service_limits(self) -> ServiceLimits:
        """The part that the servicers are told."""
        return ServiceLimits(PullLimits(self.max_pull_messages, self.max_pull_bytes), self.send_stream_window)

    def front_rules(self) -> FrontRules:
        """The part that the front of RocketMQ 5 clients is told."""
        return FrontRules(
            most_body=self.max_message_size,
            auto_create_topics=self.auto_create_topic_enable,
            queues_of_new_topics=self.default_topic_queue_nums,
            advertised=self.advertised_address,
            longest_delay_ms=self.max_delay_time_mills,
            least_invisible_ms=self.min_invisible_time_mills_for_recv,
        )

    def remoting_rules(self) -> RemotingRules:
        """The part that the front of classic clients is told."""
        return RemotingRules(
            cluster=self.broker_cluster_name,
            broker_name=self.broker_name,
            store_host=self.store_host(),
            most_messages=self.max_pull_messages,
            most_bytes=self.max_pull_bytes,
            create_groups=self.auto_create_subscription_group,
        )

    def remoting_limits(self) -> RemotingLimits:
        """What classic clients may take up."""
        return RemotingLimits(
            connections=self.remoting_max_connections,
            held_bytes=memory_budget(self),
            stalled_seconds=self.grpc_slow_peer_timeout_ms / 1000,
            idle_seconds=self.server_channel_max_idle_time_seconds,
        )

    def store_host(self) -> Host:
        """The address in records and message ids."""
        return Host(self.own_ip(), self.listen_port)

    def client_address(self, port: int) -> str:
        """Where clients find this store, which serves them on a port; `:port`: at whatever host this node has."""
        host = self.broker_ip1 or ""
        return self.advertised_address or (host_port(host, port) if host else f":{port}")

    def own_ip(self) -> str:
        """The address that stands for this store, for those who know none."""
        return self.broker_ip1 or _own_address(self.grpc_host)


PROFILES: Profiles = {
    "server": {},
    "embedded": {
        "store_path_root_dir": Path("data"),
        "mapped_file_size_commit_log": 64 * _MIB,
        "max_hash_slot_num": 500_000,
        "max_index_num": 2_000_000,
    },
}
"""Sets of defaults by name."""


def load_settings(
    file: Path | str | None = None,
    profile: str | None = None,
    *,
    environment: Mapping[str, str] | None = None,
    overrides: Mapping[str, Any] | None = None,
) -> StoreSettings:
    """The store's settings, by `load_profiled`: profile < file < environment < overrides. Raises SettingsError."""
    return load_profiled(StoreSettings, PROFILES, file, profile, environment, overrides)


def _own_address(host: str) -> str:
    """An address that stands for this store: the one it listens on, or the machine's own where it listens on all."""
    host = host.strip("[]")
    try:
        address = Host(host, 0).ip
        if not address.is_unspecified:
            return str(address)
    except IllegalHost:
        pass
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))  # nothing is sent: it only asks which address would be used
            return str(probe.getsockname()[0])
        except OSError:
            return "127.0.0.1"
