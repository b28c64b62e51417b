"""What has become of messages that waited for their time."""

from collections import Counter
from dataclasses import dataclass, field

OUTCOMES = ("delivered", "recalled", "rolled", "superseded", "unreadable", "undeliverable", "failed")
"""The fields of DelayCounts that say what became of a message, or of an attempt."""


@dataclass(slots=True)
class DelayCounts:
    """Numbers since the start of the store."""

    timers_in: Counter[str] = field(default_factory=Counter)
    """Messages with a time of their own that were put into the index, by their real topics; again when it is made anew.

    Recalls are none, and one that is stored again (rolled) counts once.
    """
    timers_out: Counter[str] = field(default_factory=Counter)
    """Those that were delivered."""
    delivered: int = 0
    recalled: int = 0
    """Taken back by their producer before they were due."""
    rolled: int = 0
    """Stored again since the log file that they lie in will expire before they are due."""
    superseded: int = 0
    """Passed over, since the same message was stored again later."""
    unreadable: int = 0
    """Not in the log any more: damaged, or expired before they were due."""
    undeliverable: int = 0
    """They name no topic or queue that they could go to."""
    failed: int = 0
    """Attempts that are made again: a full disk, a queue that is being rebuilt."""
