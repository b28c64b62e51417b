"""timed: a call of a servicer is measured for `rocketmq_rpc_latency`."""

import time
from collections.abc import Awaitable, Callable
from functools import wraps
from typing import Any, Protocol, TypeVar

import grpc

from tandemmq.common.errors import TandemError
from tandemmq.store.fronts.native.statuses import STATUSES
from tandemmq.store.metrics import StoreMetrics

Context = grpc.aio.ServicerContext[Any, Any]
Answer = TypeVar("Answer")


class Measured(Protocol):
    """A servicer with metrics."""

    metrics: StoreMetrics


def timed(handler: Callable[..., Awaitable[Answer]]) -> Callable[..., Awaitable[Answer]]:
    """Measures a call for `rocketmq_rpc_latency`."""
    method = handler.__name__

    @wraps(handler)
    async def measured(self: Measured, request: Any, context: Context) -> Answer:
        begun = time.perf_counter()
        outcome = "SUCCESS"
        try:
            return await handler(self, request, context)
        except TandemError as error:
            outcome = STATUSES[error.kind].rocketmq
            raise
        finally:
            self.metrics.called(method, outcome, time.perf_counter() - begun)

    return measured
