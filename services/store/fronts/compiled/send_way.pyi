"""What Python sees of send_way.py."""

from collections.abc import Callable

from tandemmq.common.grpc_transport import DirectCall, HeldCall
from tandemmq.store.format.host import Host
from tandemmq.store.fronts.held_answer import CoreSends, Held

class CompiledSendWay:
    def __init__(self, sends: CoreSends, peer_host: Callable[[str], Host]) -> None: ...
    def answer(self, message: bytes, call: DirectCall) -> bytes | HeldCall | None: ...
    def answer_held(self, held: list[Held]) -> None: ...
