"""What a receive asks for, checked and put together; consumers make the same one again and again.

What was put together counts as long as group, topic and rules are as they were.
"""

from typing import NamedTuple

from tandemmq.store.broker.topics import TopicConfig, TopicTable
from tandemmq.store.delivery.members.groups import GroupConfig
from tandemmq.store.delivery.port import Wish
from tandemmq.store.delivery.receiving.receive_rules import ReceiveRules, check_wish, readable_topic
from tandemmq.store.delivery.receiving.renewal import RENEWED_MS
from tandemmq.store.delivery.receiving.selection import Selection, Selections

_MOST_KNOWN = 4_096
"""So many are kept; then they are put together anew."""
_LONGEST_KEPT = 1_024
"""Characters of what is wanted, and by whom; a request may have megabytes."""


class ReceiveCall(NamedTuple):
    """A receive, as the receiver needs it."""

    group: GroupConfig
    topic: str
    selection: Selection
    invisible_ms: int
    by_priority: bool = False
    """The last queue is that of the highest priority."""


class _Known(NamedTuple):
    topic: TopicConfig
    call: ReceiveCall


class PreparedCalls:
    """Puts them together."""

    def __init__(self, topics: TopicTable, rules: ReceiveRules, selections: Selections) -> None:
        self._topics = topics
        self._rules = rules
        self._selections = selections
        self._known: dict[Wish, _Known] = {}

    def check(self, wish: Wish) -> tuple[TopicConfig, Selection]:
        """The topic and the subscription. Raises BadDelivery, BadInvisibleTime, BadFilter, and as `readable_topic`."""
        check_wish(wish, self._rules)
        selection = self._selections.select(wish.subscription)
        return readable_topic(wish.topic, wish.queue, self._topics), selection

    def of(self, wish: Wish, group: GroupConfig) -> ReceiveCall:
        """The call of a group, which may consume. Raises as `check`."""
        known = self._known.get(wish)
        if known is not None and known.call.group is group and self._topics.get(wish.topic) is known.topic:
            return known.call
        topic, selection = self.check(wish)
        call = receive_call(wish, group, topic, selection)
        if len(wish.subscription.expression) + len(wish.client_id) > _LONGEST_KEPT:
            return call
        if len(self._known) >= _MOST_KNOWN:
            self._known.clear()
        self._known[wish] = _Known(topic, call)
        return call


def receive_call(wish: Wish, group: GroupConfig, topic: TopicConfig, selection: Selection) -> ReceiveCall:
    """The call that a wish means."""
    invisible_ms = RENEWED_MS if wish.renew else wish.invisible_ms or group.invisible_ms
    by_priority = topic.by_priority and not group.consume_message_orderly
    return ReceiveCall(group, wish.topic, selection, invisible_ms, by_priority)
