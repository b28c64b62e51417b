"""What the settings bound in the service."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class PullLimits:
    """What a single answer to a pull holds at most."""

    messages: int
    bytes: int


@dataclass(frozen=True, slots=True)
class ServiceLimits:
    """What the service bounds. `stream_window`: requests of a SendStream that may wait for the disk."""

    pull: PullLimits
    stream_window: int = 256
