"""Where a receive looks for messages: places of a group, found once and kept while nothing of that changes."""

from collections.abc import Sequence
from typing import NamedTuple

from tandemmq.common.topic_names import GROUP_TOPICS
from tandemmq.store.broker.topics import TopicTable
from tandemmq.store.delivery.journal.facts import Place
from tandemmq.store.delivery.ledger.ledger import Ledger
from tandemmq.store.delivery.ledger.starts import Starts
from tandemmq.store.delivery.members.groups import GroupConfig
from tandemmq.store.delivery.port import ANY
from tandemmq.store.delivery.receiving.handles import Shown, own_topic

_MOST_KNOWN = 4_096
"""So many are kept; then they are found anew."""
_RETRIES = (Shown.RETRY, Shown.POP_RETRY_V1, Shown.POP_RETRY_V2)


class Source(NamedTuple):
    """A place that a receive looks at, and how its messages are shown."""

    place: Place
    shown: Shown


class _Known(NamedTuple):
    generation: int
    """Of the ledger."""
    sources: Sequence[Source]


class Sources:
    """Finds them."""

    def __init__(self, topics: TopicTable, starts: Starts, ledger: Ledger) -> None:
        self._starts = starts
        self._ledger = ledger
        self._known: dict[tuple[str, str, int], _Known] = {}
        topics.changed.listen(self._known.clear)

    def of(self, group: GroupConfig, topic: str, queue: int) -> Sequence[Source]:
        """The places that a receive looks at; those that are not there yet are made.

        `queue` may be ANY; only then the group's retry topics are looked at too. Raises as `Starts.open`.
        """
        key = group.name, topic, queue
        known = self._known.get(key)
        if known is not None and known.generation == self._ledger.generation:
            return known.sources
        shown_in = {topic: Shown.AS_ASKED}
        if queue == ANY and not topic.startswith(GROUP_TOPICS):
            shown_in |= {own_topic(group.name, topic, shown): shown for shown in _RETRIES}
        sources = [Source(place, shown) for name, shown in shown_in.items() for place in self._starts.open(group, name)]
        if queue != ANY:
            sources = [source for source in sources if source.place.queue == queue]
        if len(self._known) >= _MOST_KNOWN:
            self._known.clear()
        self._known[key] = _Known(self._ledger.generation, sources)
        return sources
