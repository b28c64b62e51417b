"""Which messages a receive wants: a subscription, compiled once."""

from collections.abc import Callable, Mapping
from typing import NamedTuple, Protocol

from tandemmq.store.broker.tags import TagFilter, parse_tags
from tandemmq.store.delivery.errors import BadFilter
from tandemmq.store.delivery.port import FilterKind, Subscription
from tandemmq.store.delivery.receiving.remembered import Remembered


class PropertyFilter(Protocol):
    """A filter over the properties of messages."""

    def matches(self, properties: Mapping[str, str]) -> bool:
        """Whether a message with these properties is wanted."""
        ...


ParseFilter = Callable[[Subscription], PropertyFilter]
"""Makes a filter of a subscription; raises BadFilter."""


class Selection(NamedTuple):
    """A subscription as the reader needs it: tags, which queues know by their hash, or a look at the properties."""

    tags: TagFilter | None = None
    properties: PropertyFilter | None = None

    @property
    def everything(self) -> bool:
        """Whether every message is wanted."""
        return self.tags is None and self.properties is None

    def matches(self, properties: Mapping[str, str]) -> bool:
        """Whether a message with these properties is wanted."""
        if self.tags is not None:
            return properties.get("TAGS", "") in self.tags.tags
        return self.properties is None or self.properties.matches(properties)


_EVERYTHING = Selection()


class Selections:
    """Compiles subscriptions, each of them once while it is used; see `Remembered`."""

    def __init__(self, parse: ParseFilter | None = None) -> None:
        """`parse` is for all but tags."""
        self._parse = parse
        self._compiled = Remembered(self._compile)

    def select(self, subscription: Subscription) -> Selection:
        """The subscription, compiled. Raises BadFilter."""
        if subscription.kind is FilterKind.TAG and subscription.expression in ("", "*"):
            return _EVERYTHING
        return self._compiled(subscription)

    def _compile(self, subscription: Subscription) -> Selection:
        if subscription.kind is FilterKind.TAG:
            return Selection(tags=parse_tags(subscription.expression))
        if self._parse is None:
            raise BadFilter(f"Filters of kind {subscription.kind.value} are not known to this store.")
        return Selection(properties=self._parse(subscription))
