"""One scene for all tests that look at it through Prometheus."""

from collections.abc import Iterator

import pytest

from tests.dashboards.scene import Scene


@pytest.fixture(scope="package")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    """A pair with an admin that has lived a little, under a Prometheus."""
    one = Scene(tmp_path_factory.mktemp("scene"))
    with one.running():
        one.live()
        yield one
