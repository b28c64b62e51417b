"""How long a group waits between deliveries (RocketMQ: ``GroupRetryPolicy``), as milliseconds for each delivery."""

from collections.abc import Mapping
from typing import Any

_MOST = 32
"""Steps of an exponential policy, as RocketMQ counts them."""
_LONGEST_MS = 40 * 24 * 3_600_000


def policy_of(entry: Any) -> tuple[int, ...]:
    """Milliseconds until the 2nd, 3rd, ... delivery; empty for RocketMQ's levels, and where the entry makes no sense.

    ``{"type": "EXPONENTIAL", "exponentialRetryPolicy": {"initial": 5000, "max": 7200000, "multiplier": 2}}`` or
    ``{"type": "CUSTOMIZED", "customizedRetryPolicy": {"next": [1000, 5000, 10000, …]}}``, which consumers are told
    whole, as RocketMQ's proxy does. (Its broker itself takes the third one first.)
    """
    if not isinstance(entry, Mapping):
        return ()
    if entry.get("type") == "EXPONENTIAL":
        return _exponential(_object(entry.get("exponentialRetryPolicy")))
    waits = _object(entry.get("customizedRetryPolicy")).get("next")
    if not isinstance(waits, list) or not waits or not all(map(_is_wait, waits)):
        return ()
    return tuple(waits)


def is_policy(entry: Any) -> bool:
    """Whether an entry makes sense: it says waits, or none at all, and then RocketMQ's levels count."""
    if not isinstance(entry, Mapping):
        return False
    return bool(policy_of(entry)) or not (entry.get("exponentialRetryPolicy") or entry.get("customizedRetryPolicy"))


def _exponential(entry: Mapping[str, Any]) -> tuple[int, ...]:
    initial, most, factor = (entry.get(key, default) for key, default in _EXPONENTIAL.items())
    if not (_is_wait(initial) and _is_wait(most) and type(factor) is int and 1 <= factor <= _LONGEST_MS):
        return ()
    waits = [min(initial, most)]
    while len(waits) <= _MOST and waits[-1] < min(most, waits[-1] * factor):
        waits.append(min(most, waits[-1] * factor))
    return tuple(waits)


_EXPONENTIAL = {"initial": 5_000, "max": 7_200_000, "multiplier": 2}


def _object(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _is_wait(value: Any) -> bool:
    return type(value) is int and 0 <= value <= _LONGEST_MS
