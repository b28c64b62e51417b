"""What was made of subscriptions, as long as they are used: the latest, of so many characters in all."""

from collections import OrderedDict
from collections.abc import Callable
from typing import Generic, TypeVar

from tandemmq.store.delivery.port import Subscription

Made = TypeVar("Made")

_MOST = 1_024
_MOST_CHARACTERS = 256 << 10
"""A filter takes some ten times its text. One alone may be longer."""


class Remembered(Generic[Made]):
    """Calls a function for subscriptions, once for each that it remembers; not those for which it raises."""

    def __init__(self, make: Callable[[Subscription], Made]) -> None:
        self._make = make
        self._known: OrderedDict[Subscription, Made] = OrderedDict()
        self._characters = 0

    def __call__(self, subscription: Subscription) -> Made:
        """What was made of it, now or before. Raises what the function raises."""
        known = self._known
        if subscription in known:
            known.move_to_end(subscription)
            return known[subscription]
        made = known[subscription] = self._make(subscription)
        self._characters += len(subscription.expression)
        while len(known) > _MOST or (self._characters > _MOST_CHARACTERS and len(known) > 1):
            self._characters -= len(known.popitem(last=False)[0].expression)
        return made

    @property
    def characters(self) -> int:
        """Those of all subscriptions that are remembered."""
        return self._characters
