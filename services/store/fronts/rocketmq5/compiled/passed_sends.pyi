"""What Python sees of passed_sends.py."""

from collections.abc import Callable

from tandemmq.common.grpc_transport import DirectCall, HeldCall
from tandemmq.store.broker.topics import TopicConfig
from tandemmq.store.fronts.rocketmq5.passed_sends import Held, PassedWay

class CompiledPassedSends:
    taken: int
    def __init__(self, sends: PassedWay, takes_normal: Callable[[TopicConfig], bool]) -> None: ...
    def answer(self, message: bytes, call: DirectCall) -> HeldCall | None: ...

class CompiledHeldSends:
    def __init__(
        self, sends: CompiledPassedSends, next_number: Callable[[], int], put: Callable[[bytes], None]
    ) -> None: ...
    def hear(self, response: bytes) -> bytes: ...
    def pop(self, number: int) -> Held | None: ...
    def leave(self) -> list[Held]: ...
