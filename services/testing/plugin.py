"""Fixtures for pytest, found by themselves where `tandemmq[testing]` is installed.

It must be cheap to import, and imports no gRPC before a fixture is asked for: every run of pytest in that environment
loads it.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tandemmq.testing.broker import TemporaryBroker


@pytest.fixture(scope="session")
def tandem_settings() -> dict[str, object]:
    """Settings of the brokers, as in broker.conf; override it in your conftest.py."""
    return {}


@pytest.fixture(scope="session")
def tandem_broker(tandem_settings: dict[str, object]) -> "Iterator[TemporaryBroker]":
    """A broker that all tests of the run share: `.address`, `.port`, `.create_topic()`, `.create_group()`."""
    from tandemmq.testing.broker import TemporaryBroker

    with TemporaryBroker(tandem_settings) as broker:
        yield broker


@pytest.fixture
def own_tandem_broker(tandem_settings: dict[str, object]) -> "Iterator[TemporaryBroker]":
    """A broker for one test alone, which may `.kill()`, `.start()` and `.restart()` it."""
    from tandemmq.testing.broker import TemporaryBroker

    with TemporaryBroker(tandem_settings) as broker:
        yield broker
