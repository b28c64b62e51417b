"""Parameters of tests that `make test` leaves to the campaigns, as the marker `slow` does with whole tests."""

from typing import Any

import pytest


def in_campaigns(*parameters: Any) -> list[Any]:
    """For parametrize: these run in `make campaigns` only. A tuple is the values of several arguments."""
    return [pytest.param(*(one if isinstance(one, tuple) else (one,)), marks=pytest.mark.slow) for one in parameters]


SERVED_BY = ["fast", *in_campaigns("grpcio")]
"""What serves gRPC: our own transport, and grpcio's as the one that says what is right."""
