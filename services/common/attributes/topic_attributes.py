"""Which values the attributes of topics may have that RocketMQ knows."""

from tandemmq.common.attributes.topic_retention import RESERVE_TIME, is_reserve_time

_VALUES = {
    "queue.type": frozenset({"SimpleCQ", "BatchCQ"}),
    "cleanup.policy": frozenset({"DELETE", "COMPACTION"}),
    "message.type": frozenset({"UNSPECIFIED", "NORMAL", "FIFO", "DELAY", "TRANSACTION", "PRIORITY", "MIXED"}),
}
UNCHANGEABLE = frozenset({"queue.type", "cleanup.policy"})
"""A topic has them from the beginning, or not at all."""


def is_known(name: str) -> bool:
    """Whether RocketMQ knows the attribute."""
    return name in _VALUES or name == RESERVE_TIME


def allowed(name: str, value: str) -> str:
    """Which values an attribute may have, in words; empty where it may have this one, or is not known."""
    if name == RESERVE_TIME:
        return "" if is_reserve_time(value) else "a number, -1 or more"
    known = _VALUES.get(name)
    return "" if known is None or value in known else ", ".join(sorted(known))
