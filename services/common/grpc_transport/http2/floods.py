"""Floods: frames that cost us work and the peer nothing, counted and bounded (RFC 9113, section 10.5)."""

from tandemmq.common.grpc_transport.http2.errors import ConnectionFault, ErrorCode
from tandemmq.common.grpc_transport.http2.limits import Limits


class Floods:
    """Counters of one connection. They are raised by frames and lowered by time, in `tick`."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._overhead = 0
        self._settings = 0
        self._resets = 0
        self._most_open = 0
        self._window_updates = 0
        self._answered_frames = 0

    def overhead(self) -> None:
        """A frame that carried nothing. Raises ConnectionFault."""
        self._overhead += 1
        if self._overhead > self._limits.overhead_per_second:
            raise _calm("too many frames that carry nothing")

    def settings(self) -> None:
        """A SETTINGS frame. Raises ConnectionFault."""
        self._settings += 1
        if self._settings > self._limits.settings_burst:
            raise _calm("too many SETTINGS frames")

    def reset(self, open_streams: int) -> None:
        """A stream that was reset by the peer, or by us for its fault, while so many were open. Raises ConnectionFault.

        Who opens and resets at once never has many open: a rapid reset attack (CVE-2023-44487) has the burst only.
        """
        self._resets += 1
        self._most_open = max(self._most_open, open_streams)
        if self._resets > self._limits.resets_burst + self._most_open:
            raise _calm("too many streams were reset")

    def window_update(self, data_frames: int) -> None:
        """A WINDOW_UPDATE; two for each DATA frame that we sent (`data_frames` ever) are no flood."""
        self._window_updates += 1
        if self._window_updates > self._limits.overhead_per_second + 2 * (data_frames - self._answered_frames):
            raise _calm("too many WINDOW_UPDATE frames")

    def tick(self, seconds: float, data_frames: int) -> None:
        """So much time has passed."""
        if seconds <= 0:
            return
        self._overhead = max(0, self._overhead - int(self._limits.overhead_per_second * seconds))
        self._settings = max(0, self._settings - int(self._limits.settings_per_second * seconds))
        self._resets = max(0, self._resets - int(self._limits.resets_per_second * seconds))
        self._window_updates = 0
        self._answered_frames = data_frames


def _calm(reason: str) -> ConnectionFault:
    return ConnectionFault(ErrorCode.ENHANCE_YOUR_CALM, reason)
