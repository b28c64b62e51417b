"""The checksum of the store: CRC-32 (zlib, IEEE 802.3) with the sign bit taken off."""

from isal.isal_zlib import crc32

CRC_MASK = 0x7FFFFFFF


def crc31(data: bytes | bytearray | memoryview) -> int:
    """CRC-32 of ``data``, ANDed with 7FFFFFFF as Java keeps it in a non-negative int.

    No data gives 0. ISA-L computes it with SIMD instructions, 5-10 times faster than zlib.
    Source: UtilAll.crc32.
    """
    return crc32(data) & CRC_MASK
