"""A topic's own retention: its attribute `reserve.time`, which RocketMQ's tiered storage has too."""

import re
from collections.abc import Mapping

from tandemmq.common.topic_names import is_system_topic

RESERVE_TIME = "reserve.time"
"""Hours for which messages are given out; none, 0 and -1: as long as the log has them."""

_is_value = re.compile(r"-1|[0-9]{1,18}").fullmatch


def is_reserve_time(value: str) -> bool:
    """Whether the attribute may have this value: a number, -1 or more."""
    return _is_value(value) is not None


def reserve_hours(topic: str, attributes: object) -> int:
    """For how many hours a topic with such attributes gives its messages out; 0: as long as the log has them.

    What is none counts as 0, as in files of others. So do all hours of the broker's own topics.
    """
    value = attributes.get(RESERVE_TIME) if isinstance(attributes, Mapping) else None
    if not isinstance(value, str) or not is_reserve_time(value) or is_system_topic(topic):
        return 0
    return max(int(value), 0)
