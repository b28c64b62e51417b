"""What Python sees of link_sends.py."""

from collections.abc import Callable

from tandemmq.store.broker.compiled.sender import CompiledSender

class CompiledLinkSends:
    end_offset: int
    taken: int
    def __init__(self, sender: CompiledSender, packed_host: Callable[[str], bytes]) -> None: ...
    def answer(self, request: bytes) -> tuple[bytes, bytes]: ...
