"""Parameters of tests that `make test` leaves to the campaigns, as the marker `slow` does with whole tests."""

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis.strategies import SearchStrategy


def in_campaigns(*parameters: Any) -> list[Any]:
    """For parametrize: these run in `make campaigns` only. A tuple is the values of several arguments."""
    return [pytest.param(*(one if isinstance(one, tuple) else (one,)), marks=pytest.mark.slow) for one in parameters]


SERVED_BY = ["fast", *in_campaigns("grpcio")]
"""What serves gRPC: our own transport, and grpcio's as the one that says what is right."""


def examples(few: int, many: int, *arguments: SearchStrategy[Any]) -> Callable[[Callable[..., None]], Any]:
    """Like given: draws a test's arguments, `few` times in `make test` and `many` times in `make campaigns`."""

    def decorate(test: Callable[..., None]) -> Any:
        @pytest.mark.seeded
        @pytest.mark.parametrize("examples", [few, *in_campaigns(many)])
        def run(examples: int) -> None:
            settings(max_examples=examples, deadline=None)(given(*arguments)(test))()

        run.__name__, run.__qualname__, run.__module__, run.__doc__ = (
            test.__name__, test.__qualname__, test.__module__, test.__doc__,
        )  # fmt: skip
        return run

    return decorate
