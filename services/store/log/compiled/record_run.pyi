"""What Python sees of record_run.py."""

from tandemmq.store.format.buffers import ReadBuffer

def read(
    units: bytes, log: ReadBuffer, start: int, stop: int, topic: bytes, queue_id: int, first: int, room: int
) -> tuple[int, bytes]: ...
def read_tagged(
    units: bytes,
    log: ReadBuffer,
    start: int,
    stop: int,
    topic: bytes,
    queue_id: int,
    first: int,
    wanted: dict[int, bytes],
    most: int,
    room: int,
    anyway: bool,
) -> tuple[int, int, bool, bytes]: ...
