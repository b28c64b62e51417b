"""Processes that we start: they end when we do, and how they ended in words."""

import ctypes
import os
import signal

_PR_SET_PDEATHSIG = 1
"""Option of Linux's prctl: the signal that a process gets when its parent is gone."""

_libc = ctypes.CDLL(None, use_errno=True)
"""Loaded before any fork."""


def die_with(parent: int, number: int = signal.SIGTERM) -> None:
    """In the new process: ask for a signal at the end of the thread of `parent` that made it, however that ends."""
    _libc.prctl(_PR_SET_PDEATHSIG, number, 0, 0, 0)
    if os.getppid() != parent:  # it ended between fork and prctl
        os._exit(0)


def how_it_ended(code: int) -> str:
    """An exit code in words: `exit code 1`, `SIGKILL`."""
    if code >= 0:
        return f"exit code {code}"
    try:
        return signal.Signals(-code).name
    except ValueError:
        return f"signal {-code}"
