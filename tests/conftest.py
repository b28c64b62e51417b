"""What all tests share: coroutine tests on uvloop, and an environment without TANDEM_ settings."""

import asyncio
import inspect
import os
import signal
from typing import Any

import pytest
import uvloop

OF_THE_TESTS = ("TANDEM_TEST_", "TANDEM_GOLDEN", "TANDEM_SEED")
"""Variables that are for the tests themselves."""


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
    """A developer's own TANDEM_ variables must not change what a test sees."""
    for variable in list(os.environ):
        if variable.startswith("TANDEM_") and not variable.startswith(OF_THE_TESTS):
            monkeypatch.delenv(variable)


def pytest_configure() -> None:
    """A shell's background job ignores Ctrl-C, and so would every process that a test starts and interrupts."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection_modifyitems(items: list[Any]) -> None:
    """Tests marked `serial` share one xdist worker (with --dist loadgroup), so they never run beside each other."""
    for item in items:
        if item.get_closest_marker("serial"):
            item.add_marker(pytest.mark.xdist_group("serial"))
