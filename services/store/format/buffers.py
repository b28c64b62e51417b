"""What may hold the bytes of a file: the types that functions of this package take."""

from mmap import mmap

ReadBuffer = bytes | bytearray | memoryview | mmap
WriteBuffer = bytearray | memoryview | mmap
