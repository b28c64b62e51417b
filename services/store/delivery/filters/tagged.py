"""Tags: `*`, `a || b`."""

from collections.abc import Mapping

from tandemmq.store.broker.tags import TagFilter
from tandemmq.store.format.properties import TAGS


class AllMessages:
    """Every message of the topic."""

    def by_tags_code(self, code: int) -> bool | None:
        """Every one."""
        return True

    def matches(self, properties: Mapping[str, str]) -> bool:
        """Every one."""
        return True


class TaggedMessages:
    """Messages that have one of some tags. Different tags may have the same code, so the tag itself is looked at."""

    def __init__(self, tags: TagFilter) -> None:
        self._tags = tags

    def by_tags_code(self, code: int) -> bool | None:
        """False where no tag has this code."""
        return None if self._tags.may_match(code) else False

    def matches(self, properties: Mapping[str, str]) -> bool:
        """Whether the message's tag is one of them."""
        return properties.get(TAGS) in self._tags.tags
