"""What Python sees of batch_kernel.py."""

from array import array

def measure(address: int, length: int, fixed: int, append_crc: bool) -> tuple[int, int]: ...
def measure_plain(address: int, length: int, fixed: int, append_crc: bool, longest_body: int) -> tuple[int, int]: ...
def write(
    address: int,
    length: int,
    target: int,
    common: bytes,
    head_size: int,
    queue_offset: int,
    physical_offset: int,
    append_crc: bool,
    offsets: array[int],
) -> None: ...
