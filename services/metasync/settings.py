"""The settings of the metadata service, under RocketMQ's names where RocketMQ has the setting."""

import socket
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tandemmq.common.calling.addresses import check_address
from tandemmq.common.settings import default_ports
from tandemmq.common.settings.broker_role import BrokerRole
from tandemmq.common.settings.server_settings import ServerSettings
from tandemmq.common.settings.settings import setting
from tandemmq.common.settings.settings_profiles import Profiles, load_profiled


@dataclass(frozen=True, kw_only=True)
class MetasyncSettings(ServerSettings):
    """All settings of the metadata service."""

    # -- who and where ----------------------------------------------------------------------------------------------
    broker_cluster_name: str = setting("DefaultCluster", "Cluster this broker belongs to; a label of the metrics.")
    broker_name: str = setting(socket.gethostname(), "Name of this broker; a label of the metrics.")
    broker_role: BrokerRole = setting(
        BrokerRole.ASYNC_MASTER, "What the node is as long as its store cannot be asked: a promotion outdoes it."
    )
    store_path_root_dir: Path = setting(
        Path("~/store").expanduser(), "The store's directory; the tables are in config/."
    )
    store_address: str | None = setting(
        "127.0.0.1:9081",
        "Ours: where the store serves ReplicaLog (its internalPort), to be asked for the role. Empty: never asked.",
        check=check_address,
    )
    store_service_address: str | None = setting(
        None,
        "Ours: where the store serves clients (its grpcPort). A master's offsets are compared with its queues once, "
        "when it begins. Empty: they are not.",
        check=check_address,
    )
    store_tls_trust_cert_path: Path | None = setting(
        None,
        "Ours: certificates (PEM) of those who sign the store's; set: both of its ports are asked over TLS, and shown "
        "tlsServerCertPath if they want a certificate.",
    )
    grpc_port: int = setting(
        default_ports.METASYNC, "Port on which gRPC is served; 0 takes any free one.", low=0, high=65535
    )
    metrics_port: int = setting(
        default_ports.METASYNC_METRICS,
        "Port of the metrics endpoint (/metrics); 0 takes any free one.",
        low=0,
        high=65535,
    )
    role_poll_interval: int = setting(1_000, "Ours: how often the store is asked for the role.", unit="ms", low=10)

    # -- files ------------------------------------------------------------------------------------------------------
    flush_consumer_offset_interval: int = setting(
        5_000, "How often committed consumer offsets are written; a kill -9 loses those since.", unit="ms", low=10
    )
    flush_delay_offset_interval: int = setting(10_000, "The same for delay offsets.", unit="ms", low=10)
    auto_create_subscription_group: bool = setting(True, "The first offset that a group commits creates the group.")

    # -- slave ------------------------------------------------------------------------------------------------------
    metasync_master_address: str | None = setting(
        None, "Ours: where the master's metasync serves gRPC, host:port. Needed by a slave.", check=check_address
    )
    metasync_remoting_master_address: str | None = setting(
        None,
        "Ours: the listenPort of a master that is a RocketMQ broker, host:port: its tables are copied instead, without "
        "TLS.",
        check=check_address,
    )
    metasync_tls_trust_cert_path: Path | None = setting(
        None,
        "Ours: certificates (PEM) of those who sign the master's metasync; set: it is asked over TLS, and shown "
        "tlsServerCertPath if it wants a certificate.",
    )
    metasync_initial_delay: int = setting(
        3_000, "Ours: a slave copies the tables this long after it became one.", unit="ms", low=0
    )
    metasync_interval: int = setting(10_000, "Ours: and then so often.", unit="ms", low=10)
    metasync_timeout: int = setting(
        3_000, "Ours: how long the master may take for an answer, or for the next page of a table.", unit="ms", low=10
    )


PROFILES: Profiles = {"server": {}, "embedded": {"store_path_root_dir": Path("data")}}
"""Sets of defaults by name, as the store has them."""


def load_settings(
    file: Path | str | None = None,
    profile: str | None = None,
    *,
    environment: Mapping[str, str] | None = None,
    overrides: Mapping[str, Any] | None = None,
) -> MetasyncSettings:
    """The settings: profile < file < environment < overrides.

    Without a profile it is `server` where there is a file, else `embedded`. `TANDEM_CONFIG` and `TANDEM_PROFILE` name
    them too.

    Raises:
        SettingsError: an unknown name, a bad value, or an unreadable file.
    """
    return load_profiled(MetasyncSettings, PROFILES, file, profile, environment, overrides)
