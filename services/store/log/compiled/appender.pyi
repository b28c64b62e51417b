"""What Python sees of appender.py."""

from collections.abc import Callable

from tandemmq.store.log.message_store import MessageStore

def source() -> str: ...

class CompiledAppender:
    def __init__(
        self,
        store: MessageStore,
        store_host: bytes,
        soon: Callable[[Callable[[], None]], object],
        sent: Callable[[str, int, int], object],
    ) -> None: ...
    def end_turn(self) -> None: ...
