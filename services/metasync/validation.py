"""What clients may ask for. Every function raises BadTableRequest (or SystemTopic) and says what would be right.

What stands in files, or comes from a master, is not held to these rules: it is kept as it is.
"""

import json
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from tandemmq.common.topic_names import SYSTEM_TOPICS, is_name, is_system_topic, longest_topic
from tandemmq.metasync.errors import BadTableRequest, SystemTopic

LONGEST_GROUP = 255
MOST_QUEUES = 1024
MOST_NAMES = 10_000
"""Entries of one request."""
LONGEST_ATTRIBUTES = 32_768
"""Characters of all names and values together."""
LONGEST_OTHER = 65_536


def local_topics(broker: str, cluster: str) -> frozenset[str]:
    """Topics that every broker makes for itself: a slave keeps its own even if the master has none."""
    own = {broker, cluster, f"{cluster}_REPLY_TOPIC", f"rmq_sys_REVIVE_LOG_{cluster}"}
    return SYSTEM_TOPICS | own | {f"rmq_sys_SYNC_BROKER_MEMBER_{broker}", "rmq_sys_wheel_timer"}


def check_topic_name(name: str) -> None:
    """Length and characters of a topic's name."""
    _check_name("topic", name, longest_topic(name))


def check_group_name(name: str) -> None:
    """Length and characters of a group's name."""
    _check_name("group", name, LONGEST_GROUP)


def check_not_system(name: str, what: str) -> None:
    """Whether clients may do that with the topic."""
    if is_system_topic(name):
        raise SystemTopic(f"{name} is a system topic: clients cannot {what} it.")


def check_names(what: str, names: Iterable[str]) -> None:
    """Names of one request: some, not too many, none of them twice."""
    names = list(names)
    if not names:
        raise BadTableRequest(f"The request names no {what}.")
    if len(names) > MOST_NAMES:
        raise BadTableRequest(f"The request names {len(names):,} {what}s: at most {MOST_NAMES:,} are allowed.")
    if len(set(names)) != len(names):
        twice = next(name for at, name in enumerate(names) if name in names[:at])
        raise BadTableRequest(f"The {what} {twice[:40]!r} is there twice.")


def check_number(what: str, number: int, low: int, high: int) -> None:
    """A number within its bounds, both included."""
    if not low <= number <= high:
        raise BadTableRequest(f"{what} is {number}: {low} to {high} are allowed.")


def check_offset(what: str, offset: int) -> None:
    """An offset of a queue."""
    if offset < 0:
        raise BadTableRequest(f"{what} is {offset}: an offset is 0 or more.")


def check_attributes(name: str, attributes: Mapping[str, str], allowed: Callable[[str, str], str]) -> None:
    """Attributes of a topic or group: plain names, and for those that mean something, values that are `allowed`."""
    if sum(len(key) + len(value) for key, value in attributes.items()) > LONGEST_ATTRIBUTES:
        raise BadTableRequest(f"The attributes of {name} have more than {LONGEST_ATTRIBUTES:,} characters.")
    for key, value in attributes.items():
        if not key or key[0] in "+-" or not key.isprintable():
            raise BadTableRequest(
                f"{name} has an attribute {key[:40]!r}.",
                remedy="Give all attributes by their plain names: the set replaces the one before.",
            )
        right = allowed(key, value)
        if right:
            raise BadTableRequest(f"The attribute {key} of {name} is {value[:40]!r}: allowed is {right}.")


def other_fields(name: str, text: str, known: Iterable[str]) -> dict[str, Any]:
    """The fields that `other_json` says."""
    if len(text) > LONGEST_OTHER:
        raise BadTableRequest(
            f"other_json of {name} has {len(text):,} characters: at most {LONGEST_OTHER:,} are allowed."
        )
    try:
        fields = json.loads(text, parse_constant=_no_constant) if text else {}
        json.dumps(fields, ensure_ascii=False).encode()
    except (ValueError, RecursionError):
        raise BadTableRequest(f"other_json of {name} is no JSON.") from None
    if not isinstance(fields, dict):
        raise BadTableRequest(f"other_json of {name} is no JSON object.")
    clash = sorted(set(fields) & set(known))
    if clash:
        raise BadTableRequest(f"other_json of {name} holds {clash[0]}, which has a field of its own.")
    return fields


def _no_constant(text: str) -> float:
    raise ValueError(text)


def _check_name(what: str, name: str, longest: int) -> None:
    if not name:
        raise BadTableRequest(f"The {what} has no name.")
    if len(name) > longest:
        raise BadTableRequest(f"The {what} {name[:40]}... has {len(name)} characters: at most {longest} are allowed.")
    if not is_name(name):
        raise BadTableRequest(f"The {what} {name!r} has other characters than a-z, A-Z, 0-9, %, |, - and _.")
