"""Parameters of tests that `make test` leaves to the campaigns, as the marker `slow` does with whole tests."""

import os
from collections.abc import Callable
from functools import wraps
from inspect import Parameter, Signature, signature
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis.strategies import SearchStrategy


def in_campaigns(*values: Any) -> list[Any]:
    """For parametrize: these values of one argument are for `make campaigns` only."""
    return [pytest.param(one, marks=pytest.mark.slow) for one in values]


def rows_in_campaigns(*rows: tuple[Any, ...]) -> list[Any]:
    """The same for several arguments."""
    return [pytest.param(*row, marks=pytest.mark.slow) for row in rows]


SERVED_BY = ["fast", *in_campaigns("grpcio")]
"""What serves gRPC: our own transport, and grpcio's as the one that says what is right."""


_TIMES = int(os.environ.get("TANDEM_EXAMPLES", "1"))
_CAMPAIGN_SECONDS = 1_800 * _TIMES
"""Patience with as many examples as a campaign draws: thousands of stores take minutes, and more beside other work."""


def examples(few: int, many: int, *arguments: SearchStrategy[Any]) -> Callable[[Callable[..., None]], Any]:
    """Like given: draws a test's last arguments, `few` times in `make test` and `many` times in `make campaigns`.

    With ``TANDEM_EXAMPLES=10`` in the environment a campaign draws ten times as often.
    """

    campaign = pytest.param(many * _TIMES, marks=[pytest.mark.slow, pytest.mark.timeout(_CAMPAIGN_SECONDS)])

    def decorate(test: Callable[..., None]) -> Any:
        fixtures = list(signature(test).parameters)[: -len(arguments)]

        @pytest.mark.seeded
        @pytest.mark.filterwarnings(
            "ignore:Generating overly large repr"
        )  # of a few large messages: it takes time, no more
        @pytest.mark.parametrize("count", [few, campaign])
        @wraps(test)
        def run(count: int, **fixtures: Any) -> None:
            settings(max_examples=count, deadline=None)(given(*arguments)(test))(**fixtures)

        run.__signature__ = Signature([Parameter(name, Parameter.KEYWORD_ONLY) for name in ("count", *fixtures)])
        return run

    return decorate
