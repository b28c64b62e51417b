"""Services that share a process: in which order they start and stop, and what the failure of one does."""

import asyncio
import logging
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest

from tandemmq.common.errors import TandemError
from tandemmq.common.processes.together import SpeakerFormatter, TogetherPart, run_together
from tandemmq.common.serving.shutdown import StopRequest


class Diary:
    """What services did."""

    def __init__(self) -> None:
        self.entries: list[str] = []

    def part(self, name: str, *, fails: Exception | None = None, ends: bool = False) -> TogetherPart:
        async def serve(answers: Callable[..., None], stop: StopRequest) -> None:
            self.entries.append(f"{name} starts")
            await asyncio.sleep(0)
            answers(name, 7)
            await asyncio.sleep(0)
            if fails is not None:
                raise fails
            if not ends:
                self.entries.append(f"{name} stops: {await stop.wait()}")
            await asyncio.sleep(0)
            self.entries.append(f"{name} ends")

        return TogetherPart(name, serve, lambda *facts: self.entries.append(f"{name} answers {facts}"))


async def test_each_starts_when_the_one_before_answers_and_they_stop_the_other_way_round() -> None:
    diary = Diary()
    last = diary.part("b")

    def answers(*facts: Any) -> None:
        last.answers(*facts)
        os.kill(os.getpid(), signal.SIGTERM)

    await run_together([diary.part("a"), last._replace(answers=answers)])
    assert diary.entries == [
        "a starts", "a answers ('a', 7)", "b starts", "b answers ('b', 7)",
        "b stops: SIGTERM", "b ends", "a stops: SIGTERM", "a ends",
    ]  # fmt: skip


async def test_the_failure_of_one_stops_the_others_and_is_raised() -> None:
    diary = Diary()
    with pytest.raises(TandemError, match="the disk is gone"):
        await run_together([diary.part("a"), diary.part("b", fails=TandemError("the disk is gone"))])
    assert diary.entries[-2:] == ["a stops: the b has ended", "a ends"]


async def test_one_that_fails_before_it_answers_keeps_the_next_from_starting() -> None:
    diary = Diary()

    async def serve(_answers: Callable[..., None], _stop: StopRequest) -> None:
        raise TandemError("the port is taken")

    with pytest.raises(TandemError, match="the port is taken"):
        await run_together([diary.part("a"), TogetherPart("b", serve, lambda: None), diary.part("c")])
    assert "c starts" not in diary.entries
    assert diary.entries[-1] == "a ends"


async def test_one_that_ends_by_itself_ends_all() -> None:
    diary = Diary()
    await run_together([diary.part("a", ends=True), diary.part("b")])
    assert diary.entries[-1] in ("a ends", "b ends")
    assert "b answers ('b', 7)" not in diary.entries or "b stops: the a has ended" in diary.entries


WAITING = """
import asyncio, os, signal
from tandemmq.common.processes.together import TogetherPart, run_together

async def first(answers, stop):
    answers()
    await stop.wait()
    print("closed", flush=True)

async def second(answers, stop):
    os.kill(os.getpid(), signal.SIGTERM)
    await asyncio.sleep(600)

asyncio.run(run_together([TogetherPart(str(one), one, lambda: None) for one in (first, second)]))
"""


def test_a_signal_ends_what_does_not_answer_yet_when_the_others_have_closed() -> None:
    """As it ends a store alone while that recovers."""
    done = subprocess.run([sys.executable, "-c", WAITING], capture_output=True, text=True, timeout=60, check=False)
    assert done.stdout == "closed\n", done.stderr
    assert done.returncode == -signal.SIGTERM


def test_each_line_of_the_log_says_who_spoke() -> None:
    form = SpeakerFormatter(["store", "replicator"], logging.Formatter("%(message)s"))

    def shown(logger: str, text: str) -> str:
        return form.format(logging.LogRecord(logger, logging.INFO, "", 0, text, None, None))

    assert shown("tandemmq.replicator.node", "linked") == "replicator\tlinked"
    assert shown("tandemmq.store", "open\nTraceback") == "store\topen\nstore\tTraceback"
    assert shown("tandemmq.common.serving.server", "listening") == "store\tlistening"
