"""Why the store may not be written (RocketMQ: ``RunningFlags``): each reason on its own, with its words (trap T23)."""

from enum import Enum


class Reason(Enum):
    """A reason not to take messages; the value is RocketMQ's bit."""

    CLOSED = 2
    QUEUE_ERROR = 4
    LOG_DISK_FULL = 16
    FLUSH_FAILED = 1 << 16  # this one and the next are ours
    SLAVE = 1 << 17
    FENCED = 1 << 18


_FAILURES = frozenset({Reason.FLUSH_FAILED, Reason.QUEUE_ERROR})


class RunningFlags:
    """The reasons that hold at present; the store is writable while there are none."""

    __slots__ = ("_reasons", "failed", "writable")

    def __init__(self) -> None:
        """Begin writable."""
        self._reasons: dict[Reason, str] = {}
        self.writable = True
        self.failed = False
        """Whether something is wrong that does not pass by itself."""

    def set(self, reason: Reason, why: str) -> bool:
        """Let a reason hold; False where it did already."""
        fresh = reason not in self._reasons
        self._reasons[reason] = why
        self._changed()
        return fresh

    def clear(self, reason: Reason) -> bool:
        """End a reason; False where it did not hold."""
        ended = self._reasons.pop(reason, None) is not None
        self._changed()
        return ended

    def _changed(self) -> None:
        self.writable = not self._reasons
        self.failed = bool(self._reasons.keys() & _FAILURES)

    def holds(self, reason: Reason) -> bool:
        """Whether a reason holds."""
        return reason in self._reasons

    @property
    def only_disks_full(self) -> bool:
        """Whether nothing else than a full disk keeps messages from being taken."""
        return self._reasons.keys() <= {Reason.LOG_DISK_FULL}

    @property
    def why(self) -> str:
        """All reasons in words; empty while the store is writable."""
        return "; ".join(self._reasons.values())
