"""Waiting for what happens in other processes."""

import time
from collections.abc import Callable

PATIENCE = 300.0
"""Seconds: a busy machine takes long to start seven containers."""


def eventually(condition: Callable[[], object], seconds: float, otherwise: str | Callable[[], str]) -> float:
    """Seconds until the condition held. AssertionError: it did not in time."""
    begin = time.monotonic()
    while not condition():
        if time.monotonic() - begin > seconds:
            raise AssertionError(otherwise if isinstance(otherwise, str) else otherwise())
        time.sleep(0.2)
    return time.monotonic() - begin
