"""What the tests of this folder measure, printed when all is over."""

from collections.abc import Callable, Iterator

import pytest

_MEASURED = pytest.StashKey[dict[str, str]]()


def pytest_configure(config: pytest.Config) -> None:
    """The marker of this folder's tests."""
    config.addinivalue_line("markers", "compose: starts the containers of docker-compose.yml")


@pytest.fixture(scope="session")
def measured(
    request: pytest.FixtureRequest, record_testsuite_property: Callable[[str, object], None]
) -> Iterator[dict[str, str]]:
    """Lines for the summary, and for a JUnit file: what, and how much."""
    lines = request.config.stash.setdefault(_MEASURED, {})
    yield lines
    for what, how_much in lines.items():
        record_testsuite_property(what, how_much)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Image size and start-up times, among pytest's last lines."""
    if lines := config.stash.get(_MEASURED, {}):
        terminalreporter.section("compose")
        for what, how_much in lines.items():
            terminalreporter.line(f"{what:<36}{how_much}")
