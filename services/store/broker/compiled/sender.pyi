"""What Python sees of sender.py."""

from tandemmq.store.broker.send import Sender
from tandemmq.store.log.compiled.appender import CompiledAppender

class CompiledSender:
    digits: bytes
    def __init__(self, sender: Sender, appender: CompiledAppender) -> None: ...
    def look_up_again(self) -> None: ...
