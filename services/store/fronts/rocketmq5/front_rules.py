"""What the settings bound in the front of RocketMQ 5 clients."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class FrontRules:
    """What the front needs to know of the settings."""

    most_body: int = 4 << 20
    auto_create_topics: bool = True
    queues_of_new_topics: int = 4
    longest_delay_ms: int = 86_400_000
    """How far ahead a delivery time may be."""
    least_invisible_ms: int = 1_000
    """The shortest invisible time of a receive."""
    advertised: str | None = None
    """`host:port` that clients are sent to; None: where they came."""
