"""numba's part: kernels are compiled at their first call, without the GIL, kept on disk, with ISA-L's CRC at hand."""

import warnings
from collections.abc import Callable
from typing import Any, TypeVar

import llvmlite.binding
import numba
from llvmlite import ir
from numba import carray, njit, types
from numba.extending import intrinsic

from tandemmq.store.format.compiled.prebuilt import CRC_SYMBOL, sources_digest
from tandemmq.store.format.crc import crc_address

__all__ = ["carray", "helper", "intrinsic", "ir", "isal_crc32", "kernel", "types"]

Function = TypeVar("Function", bound=Callable[..., object])

# Machine code from the cache refers to isal's function by this name; an address would be wrong in the next process.
llvmlite.binding.add_symbol(CRC_SYMBOL, crc_address())
_STAMP = sources_digest()
_NO_STAMP = (
    "numba {} has no _cache._cache_file._source_stamp: compiled kernels are not kept, every process compiles its own;"
    " install a numba that TandemMQ was tested with (constraints.txt)"
)

isal_crc32 = types.ExternalFunction(CRC_SYMBOL, types.uint32(types.uint32, types.uint64, types.uint64))
"""crc32(start value, address, size): unmasked CRC-32, to be called from kernels."""


KERNELS: list[Any] = []
"""All that were made in this process."""


def kernel(function: Function) -> Function:
    """Compile ``function`` on its first call, or take it from the cache.

    numba recompiles when the file of a function changes, but not when a function it inlines from another file does. So
    the cache's stamp is extended by the contents of all files of this package; where that cannot be, nothing is cached.
    """
    options: dict[str, Any] = {"nogil": True, "boundscheck": False, "error_model": "numpy"}
    try:
        compiled = njit(cache=True, **options)(function)
    except RuntimeError:  # no directory that a cache could be written to
        compiled = njit(**options)(function)
    else:
        if not _extend_stamp(compiled):
            warnings.warn(_NO_STAMP.format(numba.__version__), RuntimeWarning, stacklevel=1)
            compiled = njit(**options)(function)
    KERNELS.append(compiled)
    return compiled  # type: ignore[no-any-return, unused-ignore]


def _extend_stamp(compiled: Any) -> bool:
    """False: numba keeps its stamp, which is not public, elsewhere, and would take old code for fresh."""
    cache: Any = getattr(getattr(compiled, "_cache", None), "_cache_file", None)
    stamp = getattr(cache, "_source_stamp", None)
    if stamp is None:
        return False
    cache._source_stamp = (stamp, _STAMP)
    return True


def helper(function: Function) -> Function:
    """A function for kernels to call; compiled into each of them."""
    return njit(nogil=True, boundscheck=False, error_model="numpy", inline="never")(function)  # type: ignore[no-any-return, unused-ignore]
