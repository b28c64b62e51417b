"""How far a job is, phase by phase, for people and for Prometheus."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

_POLL_SECONDS = 0.2


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a phase is: bytes of log, or of files, and records. The phases are the job's own."""

    phase: str
    done_bytes: int
    total_bytes: int
    records: int = 0


OnProgress = Callable[[Progress], None]


@contextmanager
def phase_of(
    phase: str, done: Callable[[], int], count: int, size: int, on_progress: OnProgress, seconds: dict[str, float]
) -> Iterator[None]:
    """Measure a phase of a job, and tell from time to time how far it is.

    ``done``: how many of the phase's ``count`` tasks are done; called in a thread. ``size``: bytes of all of them.
    ``seconds``: what the phase has taken is added there, also when it fails.
    """
    begun, over = time.monotonic(), threading.Event()

    def tell() -> None:
        while not over.wait(_POLL_SECONDS):
            on_progress(Progress(phase, size * min(done(), count) // max(count, 1), size))

    teller = threading.Thread(target=tell, name=f"progress of {phase}", daemon=True)
    teller.start()
    try:
        yield
    finally:
        over.set()
        teller.join()
        seconds[phase] = seconds.get(phase, 0.0) + time.monotonic() - begun
    on_progress(Progress(phase, size, size))
