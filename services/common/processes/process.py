"""What a service sets for its whole process, once: open files and malloc.

All of it is best effort: a container may forbid it, another libc may not know it; a service runs without, only slower.
"""

import ctypes
import resource

_M_TRIM_THRESHOLD = -1
_M_TOP_PAD = -2
_M_MMAP_THRESHOLD = -3
"""Parameters of glibc's mallopt (malloc.h)."""

_KEEP_BELOW = 1 << 30
"""Blocks smaller than this come from the heap and stay in it after free: 1 GiB, above any gRPC message."""

_TOP_PAD = 16 << 20
"""How much the heap grows at a time."""


def prepare_process() -> None:
    """Everything that should happen before the first large allocation and the first socket."""
    raise_open_files_limit()
    keep_freed_memory()


def raise_open_files_limit() -> int:
    """Lifts the soft limit of open files to the hard one and returns it.

    A store maps every log, queue and index file, and holds a socket per client; the usual soft limit is 1024.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == hard:
        return soft
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    except (OSError, ValueError):
        return soft
    return hard


def keep_freed_memory() -> bool:
    """Makes glibc keep freed blocks instead of returning them to the kernel; False where there is no glibc.

    By default every block over 128 KiB is mapped and unmapped, and its pages are faulted in anew each time: with
    1 MiB gRPC messages that halves the throughput (0.9 instead of 2 GB/s measured). It costs what was in use at peak.
    """
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (OSError, AttributeError):
        return False
    mallopt.argtypes = [ctypes.c_int, ctypes.c_int]
    mallopt.restype = ctypes.c_int
    wanted = ((_M_MMAP_THRESHOLD, _KEEP_BELOW), (_M_TRIM_THRESHOLD, _KEEP_BELOW), (_M_TOP_PAD, _TOP_PAD))
    accepted = [mallopt(parameter, value) for parameter, value in wanted]
    return accepted == [1] * len(wanted)
