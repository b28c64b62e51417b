"""Kernels that were compiled beforehand: a shared object and a table beside this file, called through ctypes.

tools/prebuild_kernels.py makes both, for an image that is to be small: numba and LLVM have 200 MB. Where they are not,
or are of other sources than those that lie here, kernels are numba's.

The functions of the shared object have numba's own calling convention, int32 f(result *, fault **, argument). The
argument is the address of those that the kernel has, as words: an array is its address and its shape. ctypes takes
0.1 µs for each thing that it passes, so they are few.
"""

import ctypes
import hashlib
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from struct import Struct
from typing import Any, TypeVar

import numpy as np

from tandemmq.store.format.crc import crc_address

Function = TypeVar("Function", bound=Callable[..., object])

OBJECT, TABLE = "kernels.so", "kernels.json"

CRC_SYMBOL = "tandemmq_crc32"
CRC_POINTER = "tandemmq_crc32_at"
"""A variable of the shared object: where isal's function is in this process."""

_HERE = Path(__file__).parent
_Result = ctypes.c_int64 * 2
_fault = ctypes.c_void_p()
_FAULT_AT = ctypes.addressof(_fault)
"""Where kernels that fail leave a pointer, which nobody reads: none fails."""


def sources_digest(*more: Path) -> str:
    """Of all files of this package, and of others."""
    digest = hashlib.sha256()
    for source in (*sorted(_HERE.glob("*.py")), *more):
        digest.update(source.read_bytes())
    return digest.hexdigest()


def symbol_of(function: Callable[..., object]) -> str:
    """The name of a kernel in the shared object."""
    return f"{function.__module__}.{function.__name__}".replace(".", "_")


def never_called(function: Function) -> Function:
    """In the place of decorators for what is a part of kernels only."""
    return function


class Prebuilt:
    """An open shared object."""

    def __init__(self, directory: Path, kernels: dict[str, dict[str, Any]]) -> None:
        self._kernels = kernels
        self._library = ctypes.CDLL(str(directory / OBJECT))
        ctypes.c_void_p.in_dll(self._library, CRC_POINTER).value = crc_address()

    def kernel(self, function: Function) -> Function:
        """The compiled form of ``function``. Raises ImportError if there is none of this source."""
        known = self._kernels.get(symbol_of(function))
        if known is None or known["source"] != _source_digest(function):
            raise ImportError(f"{symbol_of(function)} was not compiled with {OBJECT}, or has changed since")
        native = self._library[symbol_of(function)]
        native.argtypes = (ctypes.c_void_p, ctypes.c_void_p, ctypes.c_char_p)
        native.restype = ctypes.c_int32
        return _caller(native, known["arguments"], known["results"])  # type: ignore[return-value]


def _source_digest(function: Callable[..., object]) -> str:
    return hashlib.sha256(Path(function.__code__.co_filename).read_bytes()).hexdigest()


def load(directory: Path = _HERE) -> Prebuilt | None:
    """The shared object in a directory; None if there is none, or one of other sources.

    Raises ImportError: this processor cannot run it.
    """
    try:
        table = json.loads((directory / TABLE).read_text())
    except FileNotFoundError:
        return None
    if table["sources"] != sources_digest():
        return None
    lacking = sorted(set(table["flags"]) - _processor_flags()) if table["flags"] else []
    if lacking:
        raise ImportError(f"this processor has no {', '.join(lacking)}, with which {OBJECT} was compiled")
    return Prebuilt(directory, table["kernels"])


def _processor_flags() -> set[str]:
    """What Linux says that the processor can do."""
    with open("/proc/cpuinfo") as lines:
        return next((set(line.split()) for line in lines if line.startswith("flags")), set())


def _caller(native: Any, kinds: Sequence[tuple[str, int] | None], results: int) -> Callable[..., Any]:
    """What Python code calls. ``kinds``: of each argument, None for a number, type and dimensions of an array."""
    from tandemmq.store.format.compiled.memory import address_of  # which needs jit.py, which needs this module

    arrays = [(place, np.dtype(kind[0]), kind[1]) for place, kind in enumerate(kinds) if kind is not None][::-1]
    pack = Struct(f"{sum(1 if kind is None else 1 + kind[1] for kind in kinds)}q").pack

    def call(*arguments: Any) -> Any:
        words, kept = [*arguments], []
        for place, element, dimensions in arrays:
            array = arguments[place]
            if array.dtype != element or array.ndim != dimensions:
                raise TypeError(f"argument {place} is {array.dtype} in {array.ndim} dimensions, not {element}")
            address, keep = address_of(array)  # refuses arrays that are not contiguous
            kept.append(keep)
            words[place : place + 1] = (address, *array.shape)
        result = _Result()
        if native(result, _FAULT_AT, pack(*words)):
            raise RuntimeError(f"{native.__name__} failed")
        return None if results == 0 else result[0] if results == 1 else (result[0], result[1])

    return call
