"""What the settings bound in the service."""

from dataclasses import dataclass

from tandemmq.store.fronts.native.requests import PullLimits


@dataclass(frozen=True, slots=True)
class ServiceLimits:
    """What the service bounds. `stream_window`: requests of a SendStream that may wait for the disk."""

    pull: PullLimits
    stream_window: int = 256
