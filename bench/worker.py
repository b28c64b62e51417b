"""Measurements that need a process of their own; each prints one line of JSON. Run by the harness.

append DIRECTORY ROUNDS                        walk BODY_SIZE ROUNDS C_LIBRARY
fill ROOT MEGABYTES                            recover ROOT
grow ROOT FILE_MEGABYTES FILES QUEUES QUEUE_FILE_BYTES
delivery WHAT ROOT NUMBER...
mix TARGET CLASSIC                             (until it is killed)
log ROOT MEGABYTES BODY_SIZE                   ship ROOT END TARGET warm|cold
spark-log ROOT MEGABYTES RECORD_SIZE

These go on for as long as they are asked (conversation.py), and print a line an answer:

spark-plain DIRECTORY                          spark-session MASTER DIRECTORY rows|jobs
"""

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path

from bench.workers import appending, growing, recovering, shipping, walking


def _delivery(what: str, root: str, *numbers: str) -> object:
    from bench.workers import delivering

    return delivering.measure(what, Path(root), *numbers)


def _mix(target: str, classic: str) -> None:
    from bench.workers import mixing

    mixing.mix(target, classic)


def _spark_log(root: str, megabytes: str, record_size: str) -> dict[str, int]:
    from bench.workers import spark_log

    return spark_log.fill(Path(root), int(megabytes), int(record_size))


def _spark_plain(directory: str) -> None:
    from bench.workers import spark_plain

    spark_plain.converse(Path(directory))


def _spark_session(master: str, directory: str, kind: str) -> None:
    from bench.workers import spark_session

    spark_session.converse(master, Path(directory), kind)


_TASKS: dict[str, Callable[..., object]] = {
    "append": lambda directory, rounds: appending.measure(Path(directory), int(rounds)),
    "walk": lambda body, rounds, library: walking.measure(int(body), int(rounds), library),
    "fill": lambda root, size: recovering.fill(Path(root), int(size)),
    "recover": lambda root: recovering.recover(Path(root)),
    "log": lambda root, size, body: shipping.fill(Path(root), int(size), int(body)),
    "ship": lambda root, end, target, pages: shipping.ship(Path(root), int(end), Path(target), warm=pages == "warm"),
    "delivery": _delivery,
    "mix": _mix,
    "grow": lambda root, *numbers: growing.grow(Path(root), *map(int, numbers)),
    "spark-log": _spark_log,
    "spark-plain": _spark_plain,
    "spark-session": _spark_session,
}


def main() -> None:
    """Do one task and end without any closing of stores: `fill` is to look like a crash."""
    answer = _TASKS[sys.argv[1]](*sys.argv[2:])
    print(json.dumps(answer), flush=True)
    os._exit(0)


if __name__ == "__main__":
    main()
