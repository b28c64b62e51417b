"""What stores see of groups, in words: what is held, how often messages came, who the members are."""

import time
from typing import TYPE_CHECKING

from tandemmq.cli.nouns.calls import comma
from tandemmq.cli.talk.moments import show_seconds

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tandemmq.admin.v1.admin_pb2 import Group, GroupDetails
    from tandemmq.cli.talk.output import Output
    from tandemmq.delivery.v1.operations_pb2 import GroupTopicView, GroupView

_UNKNOWN = "-"

COLUMNS = ("in flight", "ready", "attempts", "oldest", "members")
"""Of a list of groups; `cells` gives what stands in them."""


def cells(group: "Group") -> tuple[str, ...]:
    """A group's cells of a list; dashes where its store says nothing."""
    if not group.HasField("view"):
        return (_UNKNOWN,) * len(COLUMNS)
    view = group.view
    return (
        held(view.topics),
        f"{sum(one.ready for one in view.topics):,}",
        f"{max((one.most_deliveries for one in view.topics), default=0)}",
        age(min((one.oldest_ms for one in view.topics if one.oldest_ms), default=0)),
        f"{view.consumers}" + (f" + {view.producers} sending" if view.producers else ""),
    )


def held(topics: "Iterable[GroupTopicView]") -> str:
    """Messages that members hold, and those that have failed and wait for their next delivery."""
    views = list(topics)
    put_off = sum(one.put_off for one in views)
    return f"{sum(one.in_flight for one in views):,}" + (f" + {put_off:,} put off" if put_off else "")


def remarks(group: "Group") -> str:
    """What people should know of a group."""
    told = []
    if group.orphaned:
        told.append("no configuration")
    elif not group.config.consume_enable:
        told.append("may not consume")
    if group.view.acknowledges and group.view.commits:
        told.append("mixed")
    if group.view.differing_topics:
        told.append("subscriptions differ")
    return ", ".join(told)


def age(stored_ms: int) -> str:
    """How long ago something was stored; a dash where there is nothing."""
    return show_seconds(max(time.time() - stored_ms / 1000, 0)) if stored_ms else _UNKNOWN


def by_topic(groups: "list[Group]") -> "dict[tuple[str, str], GroupTopicView]":
    """What stores see, by topic and broker."""
    return {(one.topic, group.broker): one for group in groups for one in group.view.topics}


def in_words(view: "GroupView") -> list[tuple[str, str]]:
    """Pairs of a group that is shown."""
    ways = [name for name, used in (("acknowledges", view.acknowledges), ("commits offsets", view.commits)) if used]
    mixed = ": mixed, messages may come twice" if len(ways) > 1 else ""
    pairs = [("lately", (" and ".join(ways) or "nothing") + mixed)]
    if view.differing_topics:
        pairs.append(("differing", f"its members do not subscribe alike to {comma(view.differing_topics)}"))
    return pairs


def say_members(output: "Output", details: "GroupDetails") -> None:
    """The table of members."""
    rows = [
        (one.client_id, group.broker, "sends" if one.producer else "consumes", one.protocol, one.language, one.version,
         one.address, _subscriptions(dict(one.subscriptions)), show_seconds(one.silent_ms / 1000))
        for group in details.groups for one in group.view.members
    ]  # fmt: skip
    columns = ("member", "broker", "", "protocol", "language", "version", "address", "subscribes to", "heard of before")
    output.table(columns, rows, drop=("version", "language", "broker", "heard of before", "protocol"))
    if not rows:
        output.say("It has no members now.")


def _subscriptions(given: dict[str, str]) -> str:
    return comma([topic if text in ("", "*") else f"{topic} ({text})" for topic, text in sorted(given.items())])
