"""What the store tells about itself while it works; the service turns it into metrics."""

from typing import Protocol


class Observer(Protocol):
    """Receives measurements. Called on the event loop unless said; must be quick and must not raise."""

    def appended(self, seconds: float, messages: int, size: int, calls: int = 1) -> None:
        """``messages`` records of ``size`` bytes together were copied into the log in ``seconds``, by so many calls."""

    def flushed(self, seconds: float, size: int) -> None:
        """One group commit made ``size`` bytes durable."""

    def dispatched(self, seconds: float, messages: int, size: int) -> None:
        """``messages`` records got their consume queue units and index entries."""

    def recovering(self, phase: str, done: int, total: int) -> None:
        """Recovery or a rebuild has handled ``done`` of ``total`` bytes; may come from another thread."""

    def damaged(self, kind: str, size: int) -> None:
        """A damaged range was found."""

    def found(self, kind: str, count: int) -> None:
        """So many units, or places of the index, did not fit the log; or messages are not in it, or not served.

        ``kind``: ``unit``, ``index``, ``message``.
        """

    def unusable(self, file: str) -> None:
        """The start could not use a file beside the log, and went on without it."""

    def repaired(self, records: int, size: int) -> None:
        """``size`` damaged bytes of the log hold ``records`` records again."""

    def scrubbed(self, done: int, total: int) -> None:
        """A scrub has read ``done`` of ``total`` bytes of the log; at its end both are 1."""

    def failed(self, what: str) -> None:
        """A background task failed; the store says more in its log and its flags."""


class NullObserver:
    """Listens to nothing."""

    def appended(self, seconds: float, messages: int, size: int, calls: int = 1) -> None:
        """Ignore."""

    def flushed(self, seconds: float, size: int) -> None:
        """Ignore."""

    def dispatched(self, seconds: float, messages: int, size: int) -> None:
        """Ignore."""

    def recovering(self, phase: str, done: int, total: int) -> None:
        """Ignore."""

    def damaged(self, kind: str, size: int) -> None:
        """Ignore."""

    def found(self, kind: str, count: int) -> None:
        """Ignore."""

    def unusable(self, file: str) -> None:
        """Ignore."""

    def repaired(self, records: int, size: int) -> None:
        """Ignore."""

    def scrubbed(self, done: int, total: int) -> None:
        """Ignore."""

    def failed(self, what: str) -> None:
        """Ignore."""
