"""The settings of the front of classic clients."""

from dataclasses import dataclass
from enum import StrEnum

from tandemmq.common.server_settings import ServerSettings
from tandemmq.common.settings import setting


class RemotingMode(StrEnum):
    """Whether classic clients are served."""

    AUTO = "auto"
    ON = "on"
    OFF = "off"


@dataclass(frozen=True, kw_only=True)
class RemotingSettings(ServerSettings):
    """What there is beside RocketMQ's listenPort."""

    listen_port: int = setting(
        10911,
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
    remoting_max_connections: int = setting(
        10_000, "Ours: connections of classic clients at a time; more are turned away.", low=1
    )
    server_channel_max_idle_time_seconds: int = setting(
        120, "Connections of classic clients on which nothing goes for so long are closed.", unit="s", low=1
    )
