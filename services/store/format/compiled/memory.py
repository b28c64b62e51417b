"""Loads and stores at an address, big-endian as in the files. Nothing is checked: kernels check before.

Addresses and values are int64 throughout; loads of ints and shorts come sign-extended like Java's.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from tandemmq.store.format.buffers import ReadBuffer

_LONG = ir.IntType(64)


def address_of(buffer: ReadBuffer) -> tuple[int, object]:
    """The address of ``buffer``'s first byte, and what has to live as long as it is used."""
    array = np.frombuffer(buffer, np.uint8)
    return int(array.__array_interface__["data"][0]), array


def _load(bits: int, swap: bool, signed: bool) -> Any:
    width = ir.IntType(bits)

    def function(typing_context: Any, address: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            value = builder.load(builder.inttoptr(arguments[0], width.as_pointer()), align=1)
            if swap:
                value = builder.bswap(value)
            if bits == _LONG.width:
                return value
            return builder.sext(value, _LONG) if signed else builder.zext(value, _LONG)

        return types.int64(types.int64), generate

    return function


def _store(bits: int) -> Any:
    width = ir.IntType(bits)

    def function(typing_context: Any, address: Any, value: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            number = arguments[1] if bits == _LONG.width else builder.trunc(arguments[1], width)
            builder.store(builder.bswap(number), builder.inttoptr(arguments[0], width.as_pointer()), align=1)
            return context.get_dummy_value()

        return types.void(types.int64, types.int64), generate

    return function


def _copy(typing_context: Any, target: Any, source: Any, size: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        byte = ir.IntType(8).as_pointer()
        to, origin = (builder.inttoptr(argument, byte) for argument in arguments[:2])
        cgutils.raw_memcpy(builder, to, origin, arguments[2], 1)
        return context.get_dummy_value()

    return types.void(types.int64, types.int64, types.int64), generate


def _named(name: str, function: Any) -> Callable[..., Any]:
    function.__name__ = function.__qualname__ = name
    return intrinsic(function)  # type: ignore[no-any-return, unused-ignore]


byte_at = _named("byte_at", _load(8, False, False))
short_at = _named("short_at", _load(16, True, True))
int_at = _named("int_at", _load(32, True, True))
long_at = _named("long_at", _load(64, True, True))
raw_long_at = _named("raw_long_at", _load(64, False, True))
"""Eight bytes in the machine's order, for comparing."""
put_short = _named("put_short", _store(16))
put_int = _named("put_int", _store(32))
put_long = _named("put_long", _store(64))
copy = _named("copy", _copy)
"""copy(target, source, size): memcpy."""


def _put_byte(typing_context: Any, address: Any, value: Any) -> Any:
    byte = ir.IntType(8)

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        builder.store(builder.trunc(arguments[1], byte), builder.inttoptr(arguments[0], byte.as_pointer()), align=1)
        return context.get_dummy_value()

    return types.void(types.int64, types.int64), generate


put_byte = _named("put_byte", _put_byte)
