"""Processes of ours that we start: they end when we do, and how they ended in words.

A new process asks the kernel for its signal itself, when it begins. Python can have that done between fork and exec
(`preexec_fn`), but then the fork handlers of libraries run there, and those of grpcio can abort: of 1,500 forks beside
busy clients and a busy server 29 did.
"""

import ctypes
import os
import signal
from collections.abc import Mapping

_PR_SET_PDEATHSIG = 1
"""Option of Linux's prctl: the signal that a process gets when its parent is gone."""

_VARIABLE = "TANDEM_ENDS_WITH"


def ending_with_us(environment: Mapping[str, str] | None = None, number: int = signal.SIGTERM) -> dict[str, str]:
    """An environment (ours, if none is given) for a command of ours that gets a signal at the end of this thread.

    However the thread ends: start the command in one that lives as long as it should, as the main thread.
    """
    return {**(os.environ if environment is None else environment), _VARIABLE: f"{os.getpid()}:{number:d}"}


def end_with_parent() -> None:
    """At the beginning of a command of ours: ask for the signal that `ending_with_us` has named, if it was used."""
    parent, _, number = os.environ.pop(_VARIABLE, "").partition(":")
    if parent.isdecimal() and number.isdecimal():
        die_with(int(parent), int(number))


def die_with(parent: int, number: int) -> None:
    """In a process that is ours, at its beginning: ask for a signal at the end of the thread that made it."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, number, 0, 0, 0)
    if os.getppid() != parent:  # it ended before we asked
        os._exit(0)


def how_it_ended(code: int) -> str:
    """An exit code in words: `exit code 1`, `SIGKILL`."""
    if code >= 0:
        return f"exit code {code}"
    try:
        return signal.Signals(-code).name
    except ValueError:
        return f"signal {-code}"
