"""What all tests share: coroutine tests on uvloop, an environment without TANDEM_ settings, and one seed."""

import asyncio
import inspect
import os
import re
import signal
from collections import Counter
from typing import Any

import pytest
import uvloop
from hypothesis import settings

from tests.scheduling import FileScheduling
from tests.seed import SEED, draws

settings.register_profile("patient", deadline=None)  # no test asserts how quick something is
settings.load_profile("patient")

OF_THE_TESTS = ("TANDEM_TEST_", "TANDEM_GOLDEN", "TANDEM_SEED")
"""Variables that are for the tests themselves."""
_OF_ROCKETMQ_5 = re.compile(r"[\[-]5\.\d")
PATIENCE_OF_SLOW = 900
"""Seconds for a test of the campaigns for which neither it nor its folder says anything."""
COUNTED_OF_EACH = 3
"""So many tests of one function that has parameters are counted by coverage."""


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Runs `async def` tests in an event loop of their own."""
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    arguments = {name: pyfuncitem.funcargs[name] for name in pyfuncitem._fixtureinfo.argnames}
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(pyfuncitem.obj(**arguments))
    return True


@pytest.fixture(autouse=True)
def _no_settings_from_outside(monkeypatch: pytest.MonkeyPatch) -> None:
    """A developer's own TANDEM_ variables, and contexts, must not change what a test sees."""
    for variable in list(os.environ):
        if variable.startswith("TANDEM_") and not variable.startswith(OF_THE_TESTS):
            monkeypatch.delenv(variable)
    monkeypatch.setenv("TANDEM_CONTEXT", "")


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    """Let Hypothesis draw from this run's seed.

    And listen to Ctrl-C: a shell's background job ignores it, and so would every process that a test interrupts.
    """
    if config.option.hypothesis_seed is None:
        config.option.hypothesis_seed = str(SEED)
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_report_header() -> str:
    """The seed, at the beginning."""
    return f"TANDEM_SEED={SEED}"


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """And at the end, where it is looked for."""
    terminalreporter.write_line(f"TANDEM_SEED={SEED}")


def pytest_itemcollected(item: Any) -> None:
    """Keep the tests of each line of RocketMQ on one worker: xdist names groups before the hook below is called."""
    if item.get_closest_marker("rocketmq"):
        item.add_marker(pytest.mark.xdist_group(f"rocketmq {5 if _OF_ROCKETMQ_5.search(item.name) else 4}"))


def pytest_collection_modifyitems(items: list[Any]) -> None:
    """Mark what draws at random, give time to what is slow; and let tests marked `serial` share one xdist worker."""
    for item in items:
        if _draws(item):
            item.add_marker("seeded")
        if item.get_closest_marker("serial"):
            item.add_marker(pytest.mark.xdist_group("serial"))
        if item.get_closest_marker("slow") and not item.get_closest_marker("timeout"):
            item.add_marker(pytest.mark.timeout(PATIENCE_OF_SLOW))
    _count_a_few_of_each(items)


def _draws(item: Any) -> bool:
    test = getattr(item, "obj", None)
    if getattr(test, "is_hypothesis_test", False):
        return True
    if test is None or not hasattr(getattr(item, "module", None), "SEED"):
        return False
    return draws(item.path, test.__qualname__.partition(".")[0])


def _count_a_few_of_each(items: list[Any]) -> None:
    """Let coverage count no test that draws at random, and of a function with parameters the first few.

    Counting slows Python code by half, and the hundredth round of a loop runs the lines of the first.
    """
    seen: Counter[str] = Counter()
    for item in items:
        function = item.nodeid.partition("[")[0]
        seen[function] += 1
        if seen[function] > COUNTED_OF_EACH or item.get_closest_marker("seeded"):
            item.add_marker("no_cover")


def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> FileScheduling | None:
    """For `--dist loadgroup`, in the order of the folders: what a folder shares is started once in a worker too."""
    if config.getvalue("dist") != "loadgroup":
        return None
    config.option.loadscopereorder = False
    return FileScheduling(config, log)
