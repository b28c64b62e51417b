"""What Python sees of head_scan.py."""

from typing import Any

class HeadScan:
    def __init__(self, methods: dict[bytes, Any], largest_list: int) -> None: ...
    def method(self, block: bytes) -> Any: ...
