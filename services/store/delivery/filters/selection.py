"""What every filter can say."""

from collections.abc import Mapping
from typing import Protocol


class Filter(Protocol):
    """Decides which messages a consumer gets."""

    def by_tags_code(self, code: int) -> bool | None:
        """Whether a message whose consume queue unit has this tags code is one; None: its properties tell."""
        ...

    def matches(self, properties: Mapping[str, str]) -> bool:
        """Whether a message with these properties is one. Never raises."""
        ...
