"""Where buffers begin: kernels read and write at addresses, so each kind of buffer must give its own."""

import ctypes
import mmap

import pytest

from tandemmq.store.format.buffers import ReadBuffer
from tandemmq.store.format.compiled.addresses import address_of

TEXT = b"\0 twenty-three bytes \xff"


@pytest.mark.parametrize(
    "buffer",
    [TEXT, bytearray(TEXT), memoryview(TEXT), memoryview(bytearray(TEXT)), memoryview(b"?" + TEXT)[1:]],
    ids=["bytes", "bytearray", "read-only view", "view", "view into bytes"],
)
def test_the_address_is_that_of_the_first_byte(buffer: ReadBuffer) -> None:
    address, keep = address_of(buffer)
    assert keep is not None
    assert ctypes.string_at(address, len(TEXT)) == TEXT


def test_a_mapping_is_open_while_its_address_is_kept() -> None:
    mapped = mmap.mmap(-1, mmap.PAGESIZE)
    mapped[: len(TEXT)] = TEXT
    address, keep = address_of(mapped)
    assert ctypes.string_at(address, len(TEXT)) == TEXT
    with pytest.raises(BufferError):
        mapped.close()
    del keep
    mapped.close()


@pytest.mark.parametrize("buffer", [b"", bytearray(), memoryview(b"")], ids=["bytes", "bytearray", "view"])
def test_empty_buffers_have_an_address_too(buffer: ReadBuffer) -> None:
    address, _ = address_of(buffer)
    assert isinstance(address, int)
