"""A small log whose queues are irregular, each in its way, and runs that are ended in the middle."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tandemmq.spark.running.runner import InProcessRunner, Task
from tandemmq.store.format.record import Message, encode_blank, encode_record
from tests.spark.kit import Sizes
from tests.unit.format.logs import V4, props

SIZES = Sizes(log_file=8_192, queue_file=200, slots=7, entries=400, levels=(1_000,))
NOW = 1_700_000_000_000


class Killed(BaseException):
    """Nothing between here and the test catches it."""


@dataclass
class Cores(InProcessRunner):
    """As many cores as it says, one after the other."""

    parallelism: int = 1

    def run(self, task: Task, count: int, name: str) -> list[str]:
        """See `Runner`."""
        return [task(number) or "" for number in range(count)]


FIRST = 4 * SIZES.log_file
"""Where the log begins: older files have expired."""


def write_log(root: Path, *, twice: bool = True, first: int = FIRST) -> None:
    """Several files; a queue that begins late, one with a gap, one with numbers given ``twice``, a plain one.

    ``first``: log offset of the first record. At 0 the numbers of the queues that begin late cannot be, at first.
    """
    log, files = b"", list[bytes]()
    numbers = {"Late": 15, "Jumps": 0, "Twice": 15, "Plain": 0}
    for number in range(200):
        topic = list(numbers)[number % 4]
        if topic == "Jumps" and number == 101:
            numbers[topic] += 33
        if twice and topic == "Twice" and number in (102, 106):
            numbers[topic] -= 3
        message = Message(
            topic, 0, b"x" * (number % 50), props(UNIQ_KEY=f"u{number}", KEYS="k Aa"), born_host=V4, store_host=V4
        )
        size = len(encode_record(message, 0, 0, 0))
        if len(log) + size + 8 > SIZES.log_file:
            files.append(log + encode_blank(SIZES.log_file - len(log)))
            log = b""
        place = first + len(files) * SIZES.log_file + len(log)
        log += encode_record(message, numbers[topic], place, NOW + number * 300)
        numbers[topic] += 1
    directory = root / "commitlog"
    directory.mkdir(parents=True)
    for number, data in enumerate([*files, log]):
        (directory / f"{first + number * SIZES.log_file:020d}").write_bytes(data.ljust(SIZES.log_file, b"\0"))


class Steps:
    """Counts calls of some functions, and ends the run before or after one of them."""

    def __init__(self, patch: pytest.MonkeyPatch, at: int, *, behind: bool) -> None:
        self.count = 0
        self._patch, self._at, self._behind = patch, at, behind

    def watch(self, owner: Any, name: str) -> None:
        """Count the calls of ``owner.name``."""
        real: Callable[..., Any] = getattr(owner, name)

        def watched(*arguments: Any, **more: Any) -> Any:
            self.count += 1
            mine = self.count == self._at
            if mine and not self._behind:
                raise Killed
            result = real(*arguments, **more)
            if mine:
                raise Killed
            return result

        self._patch.setattr(owner, name, watched)
