"""What Python sees of consumer_codec.py."""

from collections.abc import Callable, Sequence

from tandemmq.store.delivery.port import Batch, Outcome

class CompiledReceived:
    def __init__(self, otherwise: Callable[[Batch], bytes]) -> None: ...
    def answer(self, batch: Batch) -> bytes: ...

class CompiledHandles:
    handles: list[str]
    def answered(self, outcomes: Sequence[Outcome]) -> tuple[bytes, str]: ...
