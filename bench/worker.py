"""Measurements that need a process of their own; each prints one line of JSON. Run by the harness.

append DIRECTORY ROUNDS                        walk BODY_SIZE ROUNDS C_LIBRARY
fill ROOT MEGABYTES                            recover ROOT
grow ROOT FILE_MEGABYTES FILES QUEUES QUEUE_FILE_BYTES
"""

import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path

from bench.workers import appending, growing, recovering, walking


def _warm() -> float:
    from tandemmq.store.format.compiled import warm

    begun = time.perf_counter()
    warm()
    return time.perf_counter() - begun


_TASKS: dict[str, Callable[..., object]] = {
    "warm": _warm,
    "append": lambda directory, rounds: appending.measure(Path(directory), int(rounds)),
    "walk": lambda body, rounds, library: walking.measure(int(body), int(rounds), library),
    "fill": lambda root, size: recovering.fill(Path(root), int(size)),
    "recover": lambda root: recovering.recover(Path(root)),
    "grow": lambda root, *numbers: growing.grow(Path(root), *map(int, numbers)),
}


def main() -> None:
    """Do one task and end without any closing of stores: `fill` is to look like a crash."""
    answer = _TASKS[sys.argv[1]](*sys.argv[2:])
    print(json.dumps(answer), flush=True)
    os._exit(0)


if __name__ == "__main__":
    main()
