"""Compiles the kernels of tandemmq.store.format.compiled beforehand, so that an image needs neither numba nor LLVM.

    python tools/prebuild_kernels.py DIRECTORY        writes kernels.so and kernels.json (see prebuilt.py)

Needs numba and ld. The kernels are called first, so that numba knows the types of their arguments. Machine code is not
for the processor at hand, but for any with AVX2 (since 2013). With less, code between calls of isal's CRC, which uses
the widest registers there are, takes twice as long.
"""

import hashlib
import json
import platform
import subprocess
import sys
from itertools import count
from pathlib import Path
from typing import Any

import numba
import numpy as np
from llvmlite import ir
from numba import carray, types

from tandemmq.spark.auditing import audit_kernels
from tandemmq.store.format import compiled
from tandemmq.store.format.compiled import keys, record_columns
from tandemmq.store.format.compiled.memory import pointer, raw_long_at
from tandemmq.store.format.compiled.numba_jit import KERNELS
from tandemmq.store.format.compiled.prebuilt import CRC_POINTER, CRC_SYMBOL, OBJECT, TABLE, sources_digest, symbol_of
from tandemmq.store.format.compiled.walker import CompiledWalker
from tandemmq.store.format.index_layout import file_size

try:  # parts of numba that it does not promise
    from numba.core.compiler import Flags, compile_extra
    from numba.core.compiler_lock import global_compiler_lock
    from numba.core.registry import cpu_target
except ImportError as missing:
    sys.exit(f"numba {numba.__version__} has changed ({missing}): prebuild with the numba of constraints.txt")

_PROCESSORS = {"x86_64": ("x86-64-v3", ["abm", "avx2", "bmi1", "bmi2", "f16c", "fma", "movbe"])}
"""Of each kind of machine: what LLVM calls the processor, and the flags by which Linux knows it. Else any will do."""

_SLOTS, _ENTRIES = 2, 3


def main() -> None:
    """The command."""
    directory = Path(sys.argv[1])
    call_all()
    with global_compiler_lock:
        machine_code = object_code(KERNELS)
    part = directory / "kernels.o"
    part.write_bytes(machine_code)
    # Linked with libc, since symbols without a version mean its oldest: a memcpy that is many times slower.
    subprocess.run(["ld", "-shared", "--strip-all", "-o", directory / OBJECT, part, "-l:libc.so.6"], check=True)
    part.unlink()
    table = {
        "sources": sources_digest(),
        "flags": _PROCESSORS.get(platform.machine(), ("", []))[1],
        "kernels": {symbol_of(one.py_func): described(one) for one in KERNELS},
    }
    (directory / TABLE).write_text(json.dumps(table, indent=1) + "\n")
    print(f"{len(KERNELS)} kernels, {(directory / OBJECT).stat().st_size:,} bytes")


def call_all() -> None:
    """Every kernel once, with arguments of the types that it has in use."""
    compiled.warm()
    record_columns.warm()
    log = bytes(64)
    found = keys.keys_of(CompiledWalker().walk(log, 0, len(log), 0, check_crc=True))
    file = bytearray(file_size(_SLOTS, _ENTRIES))
    newest = np.zeros(_SLOTS, np.int32)
    keys.put_entries(file, _SLOTS, _ENTRIES, found, first_number=1, begin_timestamp=0, newest=newest, first_slot=0)
    audit_kernels.look_at_entries(file, _SLOTS, 1, 1, live=False)


def described(kernel: Any) -> dict[str, Any]:
    """A kernel in the table. ValueError: one that was not called, or compiled for several types."""
    (signature,) = kernel.nopython_signatures
    arguments = [[one.dtype.name, one.ndim] if isinstance(one, types.Array) else None for one in signature.args]
    source = Path(kernel.py_func.__code__.co_filename).read_bytes()
    return {
        "arguments": arguments,
        "results": 0 if signature.return_type == types.none else getattr(signature.return_type, "count", 1),
        "source": hashlib.sha256(source).hexdigest(),
    }


def object_code(kernels: list[Any]) -> bytes:
    """All kernels as one relocatable object."""
    processor, _ = _PROCESSORS.get(platform.machine(), ("", []))
    context = cpu_target.target_context.with_aot_codegen("kernels", cpu_name=processor)
    library = context.codegen().create_library("kernels")
    library.add_ir_module(surroundings(library.create_ir_module("surroundings")))
    flags = Flags()
    flags.no_compile = flags.no_cpython_wrapper = flags.no_cfunc_wrapper = flags.nrt = True
    flags.boundscheck = False
    flags.error_model = "numpy"
    for one in kernels:
        (signature,) = one.nopython_signatures
        function, results = with_one_argument(one, signature), signature.return_type
        done = compile_extra(cpu_target.typing_context, context, function, (types.int64,), results, flags, {}, library)
        library.get_function(done.fndesc.llvm_func_name).name = symbol_of(one.py_func)
    library.finalize()
    machine_code: bytes = library.emit_native_object()
    return machine_code


def with_one_argument(kernel: Any, signature: Any) -> Any:
    """A function that finds a kernel's arguments at an address, one word after the other, and calls it."""
    passed = []
    words = (f"word(at + {8 * place})" for place in count())
    for kind in signature.args:
        first = next(words)
        if isinstance(kind, types.Array):
            shape = ", ".join(next(words) for _ in range(kind.ndim))
            passed.append(f"carray(pointer({first}), ({shape},), {kind.dtype.name})")
        else:
            passed.append(f"{first} != 0" if kind == types.boolean else first)
    names = {"kernel": kernel, "carray": carray, "pointer": pointer, "word": raw_long_at}
    names |= {"int64": np.int64, "int32": np.int32}
    exec(f"def with_words(at): return kernel({', '.join(passed)})", names)  # noqa: S102 - text of our own
    return names["with_words"]


def surroundings(module: Any) -> Any:
    """What the kernels call: isal's CRC, through a variable; and the end of arrays that own memory, as none does."""
    word, byte = ir.IntType(64), ir.IntType(8).as_pointer()
    crc = ir.FunctionType(ir.IntType(32), (ir.IntType(32), word, word))
    target = ir.GlobalVariable(module, crc.as_pointer(), CRC_POINTER)
    target.initializer = ir.Constant(crc.as_pointer(), None)
    function = ir.Function(module, crc, CRC_SYMBOL)
    builder = ir.IRBuilder(function.append_basic_block())
    builder.ret(builder.call(builder.load(target), function.args))
    end = ir.Function(module, ir.FunctionType(ir.VoidType(), (byte,)), "NRT_MemInfo_call_dtor")
    ir.IRBuilder(end.append_basic_block()).ret_void()
    return module


if __name__ == "__main__":
    main()
