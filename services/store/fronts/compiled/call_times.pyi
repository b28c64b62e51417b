"""What Python sees of call_times.py."""

from collections.abc import Callable

from tandemmq.common.metrics.distribution import Distribution

class CompiledCallTimes:
    def __init__(self, find: Callable[[], Distribution]) -> None: ...
