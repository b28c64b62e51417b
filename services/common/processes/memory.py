"""How much memory a process may use: the machine's, or less in a container."""

import os
from collections.abc import Callable
from pathlib import Path

_CGROUPS = Path("/sys/fs/cgroup")
_OWN = Path("/proc/self/cgroup")
_LIMITS = ("memory.max", "memory.limit_in_bytes")
"""Of cgroup v2 and v1."""


def machine_memory() -> int:
    """Bytes of the whole machine."""
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def usable_memory(machine: Callable[[], int] = machine_memory, cgroups: Path = _CGROUPS, own: Path = _OWN) -> int:
    """Bytes: the least of the machine's memory and the limits of the process's control groups, up to the root.

    What cannot be read limits nothing.
    """
    return min([machine(), *(limit for group in _groups(cgroups, own) for limit in _limits(group))])


def _groups(cgroups: Path, own: Path) -> set[Path]:
    """Directories of the groups that the process is in, and of all above them."""
    found = {cgroups, cgroups / "memory"}
    try:
        lines = own.read_text().splitlines()
    except OSError:
        return found
    for line in lines:
        _, controllers, path = (*line.split(":", 2), "", "")[:3]
        if controllers in ("", "memory"):
            root = cgroups / controllers
            inside = Path(os.path.normpath(path.strip("/") or "."))
            if ".." not in inside.parts:  # of another namespace: its limits cannot be seen from here
                found |= {root / inside, *(root / part for part in inside.parents)}
    return found


def _limits(group: Path) -> list[int]:
    found = []
    for name in _LIMITS:
        try:
            text = (group / name).read_text().strip()
        except OSError:
            continue
        if text.isdigit():
            found.append(int(text))
    return found
