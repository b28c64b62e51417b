"""What Python sees of walk_kernel.py."""

from array import array

def numbers() -> list[int]: ...
def walk(
    address: int,
    begin: int,
    end: int,
    length: int,
    base: int,
    check_crc: bool,
    crc_property: bool,
    limit: int,
    delays: array[int],
    room: int,
) -> bytes: ...
def verify(address: int, begin: int, end: int, base: int, crc_property: int) -> tuple[int, int]: ...
def fill_units(memory: bytes, room: int) -> bytes: ...
def resync(address: int, begin: int, end: int, base: int) -> int: ...
