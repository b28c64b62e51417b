"""Loads and stores at an address, big-endian as in the files. Nothing is checked: kernels check before.

Addresses and values are int64 throughout; loads of ints and shorts come sign-extended like Java's.
"""

import ctypes
from collections.abc import Callable
from typing import Any

import numpy as np

from tandemmq.store.format.buffers import ReadBuffer
from tandemmq.store.format.compiled.jit import intrinsic, ir, types

_LONG_BITS = 64
_first_byte = ctypes.c_char.from_buffer
_address_of_bytes = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object)(("PyBytes_AsString", ctypes.pythonapi))


def address_of(buffer: ReadBuffer) -> tuple[int, object]:
    """The address of ``buffer``'s first byte, and what has to live as long as it is used."""
    # NumPy's answer, which is one for every kind of buffer, takes five times as long; a turn of dispatch asks thrice.
    if type(buffer) is bytes:
        return _address_of_bytes(buffer) or 0, buffer
    try:
        first = _first_byte(buffer)
    except (TypeError, ValueError):  # read-only, or empty
        array = np.frombuffer(buffer, np.uint8)
        return int(array.__array_interface__["data"][0]), array
    return ctypes.addressof(first), first


def _load(bits: int, swap: bool, signed: bool) -> Any:
    def function(typing_context: Any, address: Any) -> Any:
        width, long = ir.IntType(bits), ir.IntType(_LONG_BITS)

        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            value = builder.load(builder.inttoptr(arguments[0], width.as_pointer()), align=1)
            if swap:
                value = builder.bswap(value)
            if bits == _LONG_BITS:
                return value
            return builder.sext(value, long) if signed else builder.zext(value, long)

        return types.int64(types.int64), generate

    return function


def _store(bits: int) -> Any:
    def function(typing_context: Any, address: Any, value: Any) -> Any:
        width = ir.IntType(bits)

        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            number = arguments[1] if bits == _LONG_BITS else builder.trunc(arguments[1], width)
            builder.store(builder.bswap(number), builder.inttoptr(arguments[0], width.as_pointer()), align=1)
            return context.get_dummy_value()

        return types.void(types.int64, types.int64), generate

    return function


def _copy(typing_context: Any, target: Any, source: Any, size: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        byte = ir.IntType(8).as_pointer()
        to, origin = (builder.inttoptr(argument, byte) for argument in arguments[:2])
        memcpy = builder.module.declare_intrinsic("llvm.memcpy", [byte, byte, arguments[2].type])
        builder.call(memcpy, (to, origin, arguments[2], ir.Constant(ir.IntType(1), 0)))
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


def _pointer(typing_context: Any, address: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.inttoptr(arguments[0], ir.IntType(8).as_pointer())

    return types.voidptr(types.int64), generate


pointer = _named("pointer", _pointer)
"""An address as numba's carray wants it."""
