"""How kernels are compiled: without the GIL, kept on disk, with ISA-L's CRC at hand."""

import ctypes
import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import isal.isal_zlib
import llvmlite.binding
from numba import njit, types

Function = TypeVar("Function", bound=Callable[..., object])

_SYMBOL = "tandemmq_crc32"


def _register_crc() -> None:
    """Make crc32_gzip_refl of the isal wheel known to compiled code under our name.

    Machine code from the cache refers to it by that name; an address in it would be wrong in the next process.
    """
    library = ctypes.CDLL(isal.isal_zlib.__file__)
    try:
        function = library.crc32_gzip_refl
    except AttributeError as error:
        raise ImportError("this build of isal does not export crc32_gzip_refl") from error
    address = ctypes.cast(function, ctypes.c_void_p).value
    if address is None:
        raise ImportError("crc32_gzip_refl of isal has no address")
    llvmlite.binding.add_symbol(_SYMBOL, address)


def _sources_digest() -> str:
    digest = hashlib.sha256()
    for source in sorted(Path(__file__).parent.glob("*.py")):
        digest.update(source.read_bytes())
    return digest.hexdigest()


_register_crc()
_STAMP = _sources_digest()

isal_crc32 = types.ExternalFunction(_SYMBOL, types.uint32(types.uint32, types.uint64, types.uint64))
"""crc32(start value, address, size): unmasked CRC-32, to be called from kernels."""


def kernel(function: Function) -> Function:
    """Compile ``function`` on its first call, or take it from the cache.

    numba recompiles when the file of a function changes, but not when a function it inlines from another file does. So
    the cache's stamp is extended by the contents of all files of this package.
    """
    try:
        compiled = njit(cache=True, nogil=True, boundscheck=False, error_model="numpy")(function)
    except RuntimeError:  # no directory that a cache could be written to
        return helper(function)
    cache: Any = getattr(getattr(compiled, "_cache", None), "_cache_file", None)
    if hasattr(cache, "_source_stamp"):
        cache._source_stamp = (cache._source_stamp, _STAMP)
    return compiled  # type: ignore[no-any-return, unused-ignore]


def helper(function: Function) -> Function:
    """A function for kernels to call; compiled into each of them."""
    return njit(nogil=True, boundscheck=False, error_model="numpy", inline="never")(function)  # type: ignore[no-any-return, unused-ignore]
