"""What Python sees of send_request.py."""

class CompiledSendRequest:
    def look_up_again(self) -> None: ...
