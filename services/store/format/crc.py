"""The checksum of the store: CRC-32 (zlib, IEEE 802.3) with the sign bit taken off."""

import ctypes

try:
    from isal.isal_zlib import crc32
except ModuleNotFoundError:  # the client alone, without what a broker needs
    from zlib import crc32

__all__ = ["CRC_MASK", "crc31", "crc32", "crc_address"]

CRC_MASK = 0x7FFFFFFF


def crc31(data: bytes | bytearray | memoryview) -> int:
    """CRC-32 of ``data``, ANDed with 7FFFFFFF as Java keeps it in a non-negative int.

    No data gives 0. ISA-L computes it with SIMD instructions, 5-10 times faster than zlib,
    which stands in where isal is not installed.
    Source: UtilAll.crc32.
    """
    return crc32(data) & CRC_MASK


def crc_address() -> int:
    """Where crc32_gzip_refl of the isal wheel is in this process, for code in C. Raises ImportError."""
    from isal import isal_zlib

    try:
        function = ctypes.CDLL(isal_zlib.__file__).crc32_gzip_refl
    except AttributeError as error:
        raise ImportError("this build of isal does not export crc32_gzip_refl") from error
    address = ctypes.cast(function, ctypes.c_void_p).value
    if address is None:
        raise ImportError("crc32_gzip_refl of isal has no address")
    return address
