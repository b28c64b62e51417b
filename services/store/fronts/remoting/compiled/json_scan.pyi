"""What Python sees of json_scan.py."""

from tandemmq.common.wire.remoting.header_scan import Scanned, TypedField

class CompiledJsonScan:
    def __init__(self, code: int, fields: tuple[TypedField, ...]) -> None: ...
    def scan(self, header: bytes) -> Scanned | None: ...
