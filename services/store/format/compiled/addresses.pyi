"""What Python sees of addresses.py."""

from tandemmq.store.format.buffers import ReadBuffer

def address_of(buffer: ReadBuffer) -> tuple[int, object]: ...
