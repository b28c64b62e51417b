"""What Python sees of held_calls.py."""

from collections.abc import Callable
from typing import Any

from tandemmq.common.metrics.call_metrics import CallMetrics
from tandemmq.store.delivery.port import Batch, Outcome
from tandemmq.store.fronts.held_acknowledgements import HeldAcknowledgement
from tandemmq.store.fronts.held_receives import HeldReceive

class CompiledHeldCalls:
    def __init__(self, method: str, times: CallMetrics) -> None: ...
    def all_wait(self, kept: list[Any]) -> bool: ...
    def hold_receives(
        self,
        held: list[HeldReceive],
        kept: list[Any],
        batches: list[Batch],
        answer_of: Callable[[Batch], bytes | None],
        largest: int,
        long_polling: bool,
        /,
    ) -> int: ...
    def hold_acknowledgements(
        self, held: list[HeldAcknowledgement], kept: list[Any], outcomes: list[Outcome]
    ) -> None: ...
    def answer_receives(self, held: list[HeldReceive]) -> None: ...
    def answer_acknowledgements(self, held: list[HeldAcknowledgement]) -> None: ...
