"""What Python sees of send_frames.py."""

from tandemmq.store.broker.compiled.sender import CompiledSender

class CompiledSendFrames:
    end_offset: int
    waits: bool
    taken: int
    answered: int
    position: int
    def __init__(self, sender: CompiledSender, cluster: str) -> None: ...
    def answer(self, header: bytes, body: bytes, peer: bytes, binary: bool) -> bytes | None: ...
    def answer_all(self, data: bytes, at: int, peer: bytes, most: int) -> bytes: ...
    def written(self) -> bytes: ...
