"""The settings of the front of classic clients."""

from dataclasses import dataclass
from enum import StrEnum

from tandemmq.common.calling.addresses import check_address
from tandemmq.common.settings import default_ports
from tandemmq.common.settings.server_settings import ServerSettings
from tandemmq.common.settings.settings import setting


class RemotingMode(StrEnum):
    """Whether classic clients are served."""

    AUTO = "auto"
    ON = "on"
    OFF = "off"


def check_names(text: str | None) -> str | None:
    """For `setting(check=…)`: what would be allowed, or None if the text is a list of addresses."""
    if all("," not in one and check_address(one) is None for one in addresses_of(text)):
        return None
    return "host:port;host:port"


def addresses_of(text: str | None) -> list[str]:
    """The addresses in a list as RocketMQ writes it."""
    return [one.strip() for one in (text or "").split(";") if one.strip()]


@dataclass(frozen=True, kw_only=True)
class RemotingSettings(ServerSettings):
    """What there is beside RocketMQ's listenPort."""

    listen_port: int = setting(
        default_ports.REMOTING,
        "Port on which classic clients are served, at grpcHost, and two below it the same once more (10909, the VIP "
        "channel of old clients); 0 takes any free ones. It stands in records and message ids beside brokerIP1.",
        low=0,
        high=65535,
    )
    remoting_mode: RemotingMode = setting(
        RemotingMode.AUTO,
        "Ours: whether classic clients are served at listenPort. ON: or the store does not start. AUTO: where the port "
        "can be had; else the store goes on without, and a warning says so. OFF: not at all.",
    )
    namesrv_addr: str | None = setting(
        None,
        "Name servers, RocketMQ's or ours, at which this broker registers: host:port;host:port. Empty: at none; then "
        "classic clients cannot find it.",
        check=check_names,
    )
    register_name_server_period: int = setting(
        30_000, "How often the broker registers again, beside after each change.", unit="ms", low=100
    )
    register_broker_timeout_mills: int = setting(
        6_000, "How long a name server may take for an answer.", unit="ms", low=100
    )
    ha_listen_port: int = setting(
        default_ports.HA, "Port of the replicator, which name servers are told beside brokerIP1.", low=0, high=65535
    )
    remoting_max_connections: int = setting(
        10_000, "Ours: connections of classic clients at a time; more are turned away.", low=1
    )
    server_channel_max_idle_time_seconds: int = setting(
        120, "Connections of classic clients on which nothing is sent for this long are closed.", unit="s", low=1
    )

    def check(self) -> None:
        """RocketMQ's listenPort is easily mistaken for the port of gRPC."""
        super().check()
        if self.remoting_mode is not RemotingMode.OFF and self.listen_port and self.listen_port == self.grpc_port:
            raise self.bad(
                "listen_port",
                "a port of its own: RocketMQ's classic clients are served there; gRPC clients, ours and RocketMQ 5's, "
                "on grpcPort",
            )
