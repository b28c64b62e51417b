"""What Python sees of plain_message.py."""

class CompiledMessage:
    def __init__(self, most_properties: int) -> None: ...
