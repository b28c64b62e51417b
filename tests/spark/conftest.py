"""One Spark session for all tests of this folder, on one xdist worker: a JVM a worker would be too many."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_HERE = Path(__file__).parent


_PATIENCE = 900
"""Seconds for a test: Spark alone takes up to a minute to start on a busy machine."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """All tests of this folder share one xdist worker and have patience, unless they say otherwise themselves."""
    for item in items:
        if item.path.is_relative_to(_HERE):
            if not item.get_closest_marker("xdist_group"):
                item.add_marker(pytest.mark.xdist_group("spark"))
            if not item.get_closest_marker("timeout"):
                item.add_marker(pytest.mark.timeout(_PATIENCE))


@pytest.fixture(scope="session")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator["SparkSession"]:
    """A session in local mode with two threads; a task that dies is tried again, up to four times."""
    pytest.importorskip("pyspark", reason="PySpark is not installed: the extra `spark`")
    from tandemmq.spark.running.java import JavaNotFound
    from tandemmq.spark.session import open_session

    place = tmp_path_factory.mktemp("spark")
    before = dict(os.environ)
    try:
        opened = open_session(
            "local[2,4]",
            app_name="tests",
            settings={"spark.local.dir": str(place / "local"), "spark.sql.warehouse.dir": str(place / "warehouse")},
        )
    except JavaNotFound as error:
        pytest.skip(error.explain())
    yield opened
    opened.stop()
    os.environ.clear()
    os.environ.update(before)
