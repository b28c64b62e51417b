"""What Python sees of held_calls.py."""

from tandemmq.common.metrics.call_metrics import CallMetrics
from tandemmq.store.fronts.held_acknowledgements import HeldAcknowledgement
from tandemmq.store.fronts.held_receives import HeldReceive

class CompiledHeldCalls:
    def __init__(self, method: str, times: CallMetrics) -> None: ...
    def answer_receives(self, held: list[HeldReceive]) -> None: ...
    def answer_acknowledgements(self, held: list[HeldAcknowledgement]) -> None: ...
