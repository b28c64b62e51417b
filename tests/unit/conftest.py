"""Hypothesis without a deadline (a kernel is loaded or compiled at its first call), and more time for each test."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

settings.register_profile("unit", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("unit")


def pytest_collection_modifyitems(items: list[Any]) -> None:
    """Hundreds of examples, or a compiler, take half a minute on a quiet machine: on a busy one many times that."""
    here = Path(__file__).parent
    for item in items:
        if item.path.is_relative_to(here) and item.get_closest_marker("timeout") is None:
            item.add_marker(pytest.mark.timeout(300))
