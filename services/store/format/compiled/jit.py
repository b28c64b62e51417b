"""What kernels are made with: numba; or nothing, where they were compiled when an image was built (prebuilt.py)."""

from tandemmq.store.format.compiled import prebuilt

PREBUILT = prebuilt.load()

if PREBUILT is None:
    from tandemmq.store.format.compiled.numba_jit import (
        carray,
        helper,
        intrinsic,
        ir,
        isal_crc32,
        kernel,
        types,
    )
else:
    kernel = PREBUILT.kernel
    helper = intrinsic = prebuilt.never_called
    carray = ir = isal_crc32 = types = None

__all__ = ["PREBUILT", "carray", "helper", "intrinsic", "ir", "isal_crc32", "kernel", "types"]
