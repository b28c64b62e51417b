"""What has become of messages that waited for their time."""

from dataclasses import dataclass


@dataclass(slots=True)
class DelayCounts:
    """Numbers since the start of the store."""

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
