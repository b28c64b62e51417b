"""The settings of the gateway, under RocketMQ's names where RocketMQ has the setting."""

import socket
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tandemmq.common.calling.addresses import parse_host_port
from tandemmq.common.settings import default_ports
from tandemmq.common.settings.client_port_settings import ClientPortSettings
from tandemmq.common.settings.settings import setting
from tandemmq.common.settings.settings_profiles import Profiles, load_profiled
from tandemmq.gateway.tokens import tag_of
from tandemmq.store.fronts.rocketmq5.front_rules import FrontRules
from tandemmq.store.settings import CoreChoice

_MIB = 1 << 20

Brokers = dict[str, tuple[str, ...]]
"""Addresses by the name of the broker."""


def parse_brokers(entries: tuple[str, ...]) -> Brokers:
    """`NAME=HOST:PORT` entries; one without a name is another address of the broker before. Raises ValueError."""
    brokers: Brokers = {}
    name = ""
    for entry in entries:
        named, equals, address = entry.rpartition("=")
        if equals and (not named or named in brokers):
            raise ValueError(f"{entry!r} does not name another broker")
        name = named if equals else name
        parse_host_port(address)
        if not name:
            raise ValueError(f"{entry!r} belongs to no broker")
        brokers[name] = (*brokers.get(name, ()), address)
    if not brokers or len({tag_of(name) for name in brokers}) < len(brokers):
        raise ValueError("no broker, or two whose names cannot be told apart in handles")
    return brokers


def _check_brokers(entries: tuple[str, ...]) -> str | None:
    try:
        parse_brokers(entries)
    except ValueError:
        return "at least one NAME=HOST:PORT (of a pair both: NAME=HOST:PORT,HOST:PORT), separated by ;"
    return None


@dataclass(frozen=True, kw_only=True)
class GatewaySettings(ClientPortSettings):
    """All settings of the gateway."""

    brokers: tuple[str, ...] = setting(
        ("broker-a=127.0.0.1:9081",),
        "Ours: each broker as brokerName=HOST:PORT of its store's internalPort; of a pair both addresses, the second "
        "without a name: the master is found. All gateways must have the same brokers.",
        check=_check_brokers,
    )
    broker_tls_trust_cert_path: Path | None = setting(
        None,
        "Ours: certificates (PEM) of those who sign the stores'; set: they are spoken to with TLS, and shown "
        "tlsServerCertPath if they want a certificate.",
    )
    broker_credit_bytes: int = setting(
        64 * _MIB,
        "Ours: how many bytes of messages each broker may give that clients have not taken yet.",
        unit="bytes",
        low=8 * _MIB,
        high=1 << 31,
    )
    broker_cluster_name: str = setting("DefaultCluster", "Cluster of these brokers; a label of the metrics.")
    gateway_name: str = setting(socket.gethostname(), "Ours: what this gateway is called; a label of the metrics.")
    grpc_port: int = setting(
        default_ports.STORE, "Port on which gRPC is served; 0 takes any free one.", low=0, high=65535
    )
    grpc_max_message_size: int = setting(
        16 * _MIB,
        "Largest gRPC message received or sent; must leave room for a whole batch.",
        unit="bytes",
        low=64 << 10,
        high=(1 << 31) - 1,
    )
    metrics_port: int = setting(
        default_ports.GATEWAY_METRICS,
        "Port of the metrics endpoint (/metrics); 0 takes any free one.",
        low=0,
        high=65535,
    )
    max_message_size: int = setting(4 * _MIB, "Largest body; no more than the brokers'.", unit="bytes", low=1)
    auto_create_topic_enable: bool = setting(
        True,
        "Topics that clients name are made on each broker, and a topic that some brokers have on the others too.",
    )
    default_topic_queue_nums: int = setting(4, "Queues of such a topic on each broker.", low=1, high=1024)
    compiled_core: CoreChoice = setting(
        CoreChoice.AUTO,
        "Ours: the compiled core passes plain messages on where it is built. ALWAYS: the start fails where it is not.",
    )

    def named(self) -> Brokers:
        """The brokers by name."""
        return parse_brokers(self.brokers)

    def front_rules(self) -> FrontRules:
        """The part that the front is told."""
        return FrontRules(
            most_body=self.max_message_size,
            auto_create_topics=self.auto_create_topic_enable,
            queues_of_new_topics=self.default_topic_queue_nums,
            advertised=self.advertised_address,
            longest_delay_ms=self.max_delay_time_mills,
            least_invisible_ms=self.min_invisible_time_mills_for_recv,
        )


PROFILES: Profiles = {"server": {}, "embedded": {}}
"""Sets of defaults by name, as the store has them."""


def load_settings(
    file: Path | str | None = None,
    profile: str | None = None,
    *,
    environment: Mapping[str, str] | None = None,
    overrides: Mapping[str, Any] | None = None,
) -> GatewaySettings:
    """The gateway's settings, by `load_profiled`: profile < file < environment < overrides. Raises SettingsError."""
    return load_profiled(GatewaySettings, PROFILES, file, profile, environment, overrides)
