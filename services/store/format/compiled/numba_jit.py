"""numba's part: kernels are compiled at their first call, without the GIL, kept on disk, with ISA-L's CRC at hand."""

from collections.abc import Callable
from typing import Any, TypeVar

import llvmlite.binding
from llvmlite import ir
from numba import carray, njit, types
from numba.core import cgutils
from numba.extending import intrinsic

from tandemmq.store.format.compiled.prebuilt import CRC_SYMBOL, crc_address, sources_digest

__all__ = ["carray", "cgutils", "helper", "intrinsic", "ir", "isal_crc32", "kernel", "types"]

Function = TypeVar("Function", bound=Callable[..., object])

# Machine code from the cache refers to isal's function by this name; an address would be wrong in the next process.
llvmlite.binding.add_symbol(CRC_SYMBOL, crc_address())
_STAMP = sources_digest()

isal_crc32 = types.ExternalFunction(CRC_SYMBOL, types.uint32(types.uint32, types.uint64, types.uint64))
"""crc32(start value, address, size): unmasked CRC-32, to be called from kernels."""


KERNELS: list[Any] = []
"""All that were made in this process."""


def kernel(function: Function) -> Function:
    """Compile ``function`` on its first call, or take it from the cache.

    numba recompiles when the file of a function changes, but not when a function it inlines from another file does. So
    the cache's stamp is extended by the contents of all files of this package.
    """
    try:
        compiled = njit(cache=True, nogil=True, boundscheck=False, error_model="numpy")(function)
    except RuntimeError:  # no directory that a cache could be written to
        return helper(function)
    KERNELS.append(compiled)
    cache: Any = getattr(getattr(compiled, "_cache", None), "_cache_file", None)
    if hasattr(cache, "_source_stamp"):
        cache._source_stamp = (cache._source_stamp, _STAMP)
    return compiled  # type: ignore[no-any-return, unused-ignore]


def helper(function: Function) -> Function:
    """A function for kernels to call; compiled into each of them."""
    return njit(nogil=True, boundscheck=False, error_model="numpy", inline="never")(function)  # type: ignore[no-any-return, unused-ignore]
