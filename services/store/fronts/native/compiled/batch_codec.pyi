"""What Python sees of batch_codec.py."""

from tandemmq.store.broker.compiled.sender import CompiledSender

class CompiledBatchCodec:
    end_offset: int
    waits: bool
    taken: int
    def __init__(self, sender: CompiledSender) -> None: ...
    def answer(self, message: bytes, peer: bytes) -> bytes | None: ...
