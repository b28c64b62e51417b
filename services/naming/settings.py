"""The settings of the name server, under RocketMQ's names where RocketMQ has the setting."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from tandemmq.common.settings import default_ports
from tandemmq.common.settings.server_settings import ServerSettings
from tandemmq.common.settings.settings import setting
from tandemmq.common.settings.settings_profiles import Profiles, load_profiled


@dataclass(frozen=True, kw_only=True)
class NamingSettings(ServerSettings):
    """All settings of the name server."""

    meant: ClassVar[Mapping[str, str]] = {
        "listenPort": "a name server's port is namesPort here; listenPort is a broker's, for RocketMQ's classic clients"
    }

    names_host: str = setting(
        "127.0.0.1",
        "Ours: address on which brokers, clients and tools are answered; 0.0.0.0 or [::] for all interfaces. As with "
        "RocketMQ's, whoever reaches it may register brokers: keep it inside.",
    )
    names_port: int = setting(
        default_ports.NAMES,
        "Ours: and the port (RocketMQ: the name server's listenPort); 0 takes any free one.",
        low=0,
        high=65535,
    )
    names_directory: Path = setting(
        Path("~/namesrv").expanduser(), "Ours: where kvConfig.json lies, what tools put by namespace and key."
    )
    names_max_connections: int = setting(20_000, "Ours: connections at a time; more are turned away.", low=1)
    names_broker_expiry: int = setting(
        120_000, "Ours: a broker that said nothing for this long is forgotten.", unit="ms", low=100
    )
    scan_not_active_broker_interval: int = setting(
        5_000, "How often brokers that are gone are looked for.", unit="ms", low=10
    )
    order_message_enable: bool = setting(False, "Routes tell what ORDER_TOPIC_CONFIG has of a topic.")
    return_order_topic_config_to_broker: bool = setting(
        True, "Brokers that register are told what ORDER_TOPIC_CONFIG has."
    )
    grpc_port: int = setting(
        default_ports.NAMES_GRPC,
        "Port on which gRPC is served (health, and what the process says of itself); 0: any.",
        low=0,
        high=65535,
    )
    metrics_port: int = setting(
        default_ports.NAMES_METRICS, "Port of the metrics endpoint (/metrics); 0 takes any free one.", low=0, high=65535
    )


PROFILES: Profiles = {"server": {}, "embedded": {"names_directory": Path("data/names")}}
"""Sets of defaults by name, as the store has them."""


def load_settings(
    file: Path | str | None = None,
    profile: str | None = None,
    *,
    environment: Mapping[str, str] | None = None,
    overrides: Mapping[str, Any] | None = None,
) -> NamingSettings:
    """The settings: profile < file < environment < overrides. Raises SettingsError."""
    return load_profiled(NamingSettings, PROFILES, file, profile, environment, overrides)
