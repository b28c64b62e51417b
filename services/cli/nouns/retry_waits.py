"""How long a group waits before each next delivery, as an option and in words: RocketMQ's groupRetryPolicy."""

import json
import re
from typing import TYPE_CHECKING, Any

from tandemmq.cli.talk.failures import WrongUsage
from tandemmq.cli.talk.moments import parse_duration, show_duration

if TYPE_CHECKING:
    from tandemmq.metadata.v1.metadata_pb2 import SubscriptionGroupConfig

DEFAULT = "default"
FORMS = "10s,1m,5m (the last repeats), 5s..2h (twice as long each time), 5s..2h*3, or default (1s to 2h in 18 steps)"
_KEY = "groupRetryPolicy"
_GROWING = re.compile(r"([^.*,]+)\.\.([^.*,]+)(?:\*(\d{1,6}))?")
_LONGEST_MS = 40 * 24 * 3_600_000
_MOST_WAITS = 1_000


class BadRetryWaits(WrongUsage):
    """A text that says no waits."""


def as_other_json(text: str) -> str:
    """The field `other_json` of a group with these waits. Raises BadRetryWaits, BadMoment."""
    return json.dumps({_KEY: _policy(text)})


def _policy(text: str) -> dict[str, Any]:
    if text == DEFAULT:
        return {"type": "CUSTOMIZED"}
    growing = _GROWING.fullmatch(text)
    if growing:
        first, most, factor = _wait(growing[1]), _wait(growing[2]), int(growing[3] or 2)
        if not 0 < first <= most or not factor:
            raise BadRetryWaits(f"{text!r} does not grow; write the waits as {FORMS}")
        grows = {"initial": first, "max": most, "multiplier": factor}
        return {"type": "EXPONENTIAL", "exponentialRetryPolicy": grows}
    waits = [_wait(one) for one in text.split(",")]
    if len(waits) > _MOST_WAITS:
        raise BadRetryWaits(f"{len(waits):,} waits are too many: at most {_MOST_WAITS:,}")
    return {"type": "CUSTOMIZED", "customizedRetryPolicy": {"next": waits}}


def _wait(text: str) -> int:
    milliseconds = parse_duration(text.strip())
    if milliseconds > _LONGEST_MS:
        raise BadRetryWaits(f"{text} is longer than 40d")
    return milliseconds


def in_words(config: "SubscriptionGroupConfig") -> str:
    """The waits of a group, as the option takes them; empty if it has the default."""
    try:
        policy = json.loads(config.other_json or "{}").get(_KEY) or {}
        if policy.get("type") == "EXPONENTIAL":
            grows = {"initial": 5_000, "max": 7_200_000, "multiplier": 2} | policy.get("exponentialRetryPolicy", {})
            return f"{show_duration(grows['initial'])}..{show_duration(grows['max'])}*{grows['multiplier']}"
        return ",".join(show_duration(one) for one in policy.get("customizedRetryPolicy", {}).get("next", []))
    except (ValueError, TypeError, AttributeError):
        return "not understood: the default is used"
