"""What Python sees of send_message.py."""

from collections.abc import Callable

from tandemmq.store.broker.compiled.sender import CompiledSender
from tandemmq.store.broker.topics import TopicConfig, TopicTable

class CompiledSendMessage:
    end_offset: int
    waits: bool
    taken: int
    def __init__(
        self, sender: CompiledSender, topics: TopicTable, takes_normal: Callable[[TopicConfig], bool]
    ) -> None: ...
    def look_up_again(self) -> None: ...
    def answer(self, message: bytes, peer: bytes) -> bytes | None: ...
