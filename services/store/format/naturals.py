"""Numbers in our own small documents: what they can be."""

from typing import Any

_LIMIT = 1 << 63


def natural(value: Any) -> int:
    """A number that a store counts with: of a log, a queue, or milliseconds. Raises ValueError."""
    if type(value) is not int or not 0 <= value < _LIMIT:
        raise ValueError(f"{value!r} is no number of 0 or more")
    return value


def queue_bounds(queues: dict[str, dict[str, Any]]) -> dict[tuple[str, int], tuple[int, int]]:
    """First and next queue offset by topic and queue id, as documents say them. Raises ValueError, AttributeError."""
    bounds = {}
    for topic, of_topic in queues.items():
        for queue_id, (first, end) in of_topic.items():  # ten thousand: each step counts
            number = int(queue_id)
            if not (type(first) is type(end) is int and 0 <= first <= end < _LIMIT and 0 <= number < _LIMIT):
                raise ValueError(f"queue {queue_id} of {topic} cannot have the offsets {first!r} to {end!r}")
            bounds[topic, number] = first, end
    return bounds
