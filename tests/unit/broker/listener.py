"""Who counts what a store finds that does not fit its log."""

from tandemmq.store.log.observer import NullObserver
from tests.unit.broker.broker_kit import Kit


class Listener(NullObserver):
    """Counts what is found."""

    def __init__(self) -> None:
        self.counts: dict[str, int] = {}
        self.scrubs = 0

    def found(self, kind: str, count: int) -> None:
        self.counts[kind] = self.counts.get(kind, 0) + count

    def scrubbed(self, done: int, total: int) -> None:
        self.scrubs += done == total


def listening(kit: Kit) -> Listener:
    """What a store finds from now on."""
    kit.store._parts.observer = listener = Listener()
    return listener
