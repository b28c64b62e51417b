"""What Python sees of record_run.py."""

from tandemmq.store.format.buffers import ReadBuffer

def fitting(
    units: bytes, log: ReadBuffer, start: int, stop: int, topic: bytes, queue_id: int, first: int, room: int
) -> tuple[int, int]: ...
def gathered(units: bytes, log: ReadBuffer, start: int, count: int, size: int) -> bytes: ...
