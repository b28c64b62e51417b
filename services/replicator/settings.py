"""The settings of the replicator, under RocketMQ's names where RocketMQ has the setting.

There is no brokerRole among them: the role is the store's, comes over the link and may change while the service runs.
"""

import ipaddress
import socket
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

from tandemmq.common.calling.addresses import check_address, host_port, parse_host_port
from tandemmq.common.settings import default_ports
from tandemmq.common.settings.server_settings import ServerSettings
from tandemmq.common.settings.settings import setting
from tandemmq.common.settings.settings_profiles import Profiles, load_profiled
from tandemmq.replicator.frames import MAX_BODY_SIZE

_MIB = 1 << 20

HostPort = tuple[str, int]
"""A host name or address and a port."""


class SlaveAck(StrEnum):
    """What a slave's ack says of a byte."""

    PAGE_CACHE = "PAGE_CACHE"
    FLUSHED = "FLUSHED"


def _check_peers(peers: tuple[str, ...]) -> str | None:
    try:
        for peer in peers:
            ipaddress.ip_network(peer.strip(), strict=False)
    except ValueError:
        return "IP addresses and networks like 10.0.0.0/8, separated by ;"
    return None


@dataclass(frozen=True, kw_only=True)
class ReplicatorSettings(ServerSettings):
    """All settings of the replicator service."""

    # -- who and where ----------------------------------------------------------------------------------------------
    broker_cluster_name: str = setting("DefaultCluster", "Cluster this broker belongs to; a label of the metrics.")
    broker_name: str = setting(socket.gethostname(), "Name of this broker; a label of the metrics.")
    broker_id: int = setting(
        0, "0 for a master, greater for a slave; a slave introduces itself to its master with it.", low=0
    )
    store_path_root_dir: Path = setting(Path("~/store").expanduser(), "The store's directory, on this host.")
    store_address: str = setting(
        "127.0.0.1:9081", "Ours: where the store serves ReplicaLog (its internalPort).", check=check_address
    )
    store_tls_trust_cert_path: Path | None = setting(
        None,
        "Ours: certificates (PEM) of those who sign the store's; set: its internal port is spoken to with TLS, and "
        "shown tlsServerCertPath if it wants a certificate.",
    )
    replicator_tls_trust_cert_path: Path | None = setting(
        None,
        "Ours: the same for the gRPC port of other nodes' replicators. Empty: as haTlsEnable and haTlsTrustCertPath "
        "say.",
    )
    grpc_port: int = setting(
        default_ports.REPLICATOR, "Port on which gRPC is served; 0 takes any free one.", low=0, high=65535
    )
    metrics_port: int = setting(
        default_ports.REPLICATOR_METRICS,
        "Port of the metrics endpoint (/metrics); 0 takes any free one.",
        low=0,
        high=65535,
    )

    # -- both sides -------------------------------------------------------------------------------------------------
    ha_send_heartbeat_interval: int = setting(
        5_000,
        "A silent link carries a heartbeat or a report so often. Where both nodes are TandemMQ, the slave "
        "reports every second.",
        unit="ms",
        low=1,
    )
    ha_housekeeping_interval: int = setting(
        20_000, "A connection on which nothing arrives for this long is closed.", unit="ms", low=1
    )
    ha_tls_enable: bool = setting(
        False,
        "Ours: TLS on HA connections, which RocketMQ cannot speak. A master shows tlsServerCertPath; with "
        "tlsServerTrustCertPath it asks for the slave's certificate, which shows its own tlsServerCertPath.",
    )
    ha_tls_trust_cert_path: Path | None = setting(
        None, "Ours: certificates (PEM) of those who sign masters; needed by a slave with haTlsEnable."
    )

    # -- master -----------------------------------------------------------------------------------------------------
    ha_listen_host: str = setting("127.0.0.1", "Ours: address on which slaves are accepted; 0.0.0.0 or :: for all.")
    ha_listen_port: int = setting(
        default_ports.HA, "Port on which slaves are accepted; 0 takes any free one.", low=0, high=65535
    )
    ha_allowed_peers: tuple[str, ...] = setting(
        (), "Ours: addresses and networks that slaves may come from; empty: all.", check=_check_peers
    )
    ha_max_connections: int = setting(1_024, "Ours: HA connections at a time; more are turned away.", low=1)
    ha_transfer_batch_size: int = setting(
        262_144, "Largest body of a frame. (RocketMQ: 32768.)", unit="bytes", low=1, high=MAX_BODY_SIZE
    )
    ha_flow_control_enable: bool = setting(False, "Whether maxHaTransferByteInSecond holds.")
    max_ha_transfer_byte_in_second: int = setting(
        100 * _MIB, "Most bytes sent to one slave in a second.", unit="bytes/s", low=1
    )
    sync_from_last_file: bool = setting(
        False,
        "A slave with an empty log gets only the last log file, as from RocketMQ. Off: the whole history. On a slave: "
        "asks for just that.",
    )
    ha_max_gap_not_in_sync: int = setting(256 * _MIB, "A slave with this lag is not in sync.", unit="bytes", low=1)
    in_sync_replicas: int = setting(
        2,
        "Replicas, the master included, that have a message before a SYNC_MASTER acknowledges it. (RocketMQ 5: 1, "
        "which waits for no slave at all.)",
        low=1,
    )
    min_in_sync_replicas: int = setting(
        1, "The least that enableAutoInSyncReplicas goes down to; with fewer in sync a send is refused.", low=1
    )
    all_ack_in_sync_state_set: bool = setting(False, "Every slave that is in sync must have a message.")
    enable_auto_in_sync_replicas: bool = setting(
        False, "Ask for fewer than inSyncReplicas while fewer are in sync, down to minInSyncReplicas."
    )

    # -- slave ------------------------------------------------------------------------------------------------------
    ha_master_address: str | None = setting(None, "Where the master accepts slaves, host:port.", check=check_address)
    ha_master_replicator_address: str | None = setting(
        None,
        "Ours: gRPC address of the master's replicator. Empty: the host of haMasterAddress, port 8084.",
        check=check_address,
    )
    ha_slave_ack: SlaveAck = setting(
        SlaveAck.PAGE_CACHE, "Ours: a slave acks what its store has in the page cache (as RocketMQ does), or on disk."
    )
    ha_connect_timeout: int = setting(5_000, "Ours: how long dialling the master may take.", unit="ms", low=1)
    ha_reconnect_min: int = setting(100, "Ours: first pause before the master is dialled again.", unit="ms", low=1)
    ha_reconnect_max: int = setting(5_000, "Ours: longest such pause; each is twice the last.", unit="ms", low=1)
    ha_refused_pause: int = setting(
        30_000, "Ours: pause after the logs were found to differ, which somebody must resolve.", unit="ms", low=1
    )

    def check(self) -> None:
        """What depends on more than one setting."""
        super().check()
        if self.ha_reconnect_max < self.ha_reconnect_min:
            raise self.bad("ha_reconnect_max", f"at least haReconnectMin={self.ha_reconnect_min}")
        if self.ha_housekeeping_interval <= self.ha_send_heartbeat_interval:
            raise self.bad(
                "ha_housekeeping_interval", f"more than haSendHeartbeatInterval={self.ha_send_heartbeat_interval}"
            )
        if self.min_in_sync_replicas > self.in_sync_replicas:
            raise self.bad("min_in_sync_replicas", f"at most inSyncReplicas={self.in_sync_replicas}")

    def master_replicator_address(self, ha_master_address: str) -> str:
        """Where gRPC is served by the replicator of the master that accepts slaves at `ha_master_address`."""
        if self.ha_master_replicator_address is not None and ha_master_address == self.ha_master_address:
            return self.ha_master_replicator_address
        host, _ = parse_host_port(ha_master_address)
        return host_port(host, default_ports.REPLICATOR)


PROFILES: Profiles = {"server": {}, "embedded": {"store_path_root_dir": Path("data")}}
"""Sets of defaults by name, as the store has them."""


def load_settings(
    file: Path | str | None = None,
    profile: str | None = None,
    *,
    environment: Mapping[str, str] | None = None,
    overrides: Mapping[str, Any] | None = None,
) -> ReplicatorSettings:
    """The replicator's settings, by `load_profiled`: profile < file < environment < overrides. Raises SettingsError."""
    return load_profiled(ReplicatorSettings, PROFILES, file, profile, environment, overrides)
