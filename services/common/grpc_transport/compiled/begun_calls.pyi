"""What Python sees of begun_calls.py."""

BegunCall = tuple[bytes, int, int]
"""Header block, stream, and what its window was opened by."""

class BegunCalls:
    @property
    def taken(self) -> int: ...
