"""How long a slave waits before it tries a master again that it has refused."""

from tandemmq.replicator.slave.slave_errors import SlaveRefusal


class Doubts:
    """A bit that changed on its way looks like a fork, or like another protocol.

    So what was found in frames is looked at again soon, and counts when it is found again and the log has not grown.
    """

    __slots__ = ("_last",)

    def __init__(self) -> None:
        self._last: tuple[str, int] | None = None

    def first(self, refusal: SlaveRefusal, stored: int) -> bool:
        """Whether it may be such a bit. `stored`: up to where our log went when it was found."""
        last, self._last = self._last, (refusal.reason, stored)
        return refusal.seen_in_frames and last != self._last
