"""The image, built once for this folder, and what its tests measure, printed when all is over."""

import time
from collections.abc import Callable, Iterator

import pytest

from tests.compose import engine

_PROMETHEUS = "prom/prometheus:v3.5.0"
"""As in docker-compose.yml."""

_PROMETHEUS_FROM_DEBIAN = f"""
FROM {engine.BASE_IMAGE}
RUN apt-get update && apt-get install -y --no-install-recommends prometheus && install -d -o nobody /prometheus
USER nobody
ENTRYPOINT ["prometheus"]
"""

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


@pytest.fixture(scope="package")
def base(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """An image that has Python, and knows where packages are here."""
    with engine.running_engine():
        yield engine.build_base(tmp_path_factory.mktemp("base"))


@pytest.fixture(scope="package")
def image(base: str, measured: dict[str, str], tmp_path_factory: pytest.TempPathFactory) -> str:
    """The image of docker-compose.yml, built now."""
    begin = time.monotonic()
    engine.build_product(base, tmp_path_factory.mktemp("override"))
    measured["image built in"] = f"{time.monotonic() - begin:.0f} s"
    if not engine.has_image(_PROMETHEUS) and engine.is_stand_in():
        engine.build(_PROMETHEUS, _PROMETHEUS_FROM_DEBIAN, tmp_path_factory.mktemp("prometheus"))
    return "tandemmq"


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Image size and start-up times, among pytest's last lines."""
    if lines := config.stash.get(_MEASURED, {}):
        terminalreporter.section("compose")
        for what, how_much in lines.items():
            terminalreporter.line(f"{what:<36}{how_much}")
