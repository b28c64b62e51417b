"""Builds the compiled core where there is Cython and a C compiler; without them the package is whole all the same.

Everything else about the package is in pyproject.toml.
"""

import hashlib
from pathlib import Path

from setuptools import Extension, setup

SOURCE = Path("src")
DECLARED = sorted(SOURCE.glob("tandemmq/store/**/compiled/*.pxd"))
"""What is compiled: the module beside each of these, where there is one."""

DIRECTIVES = {
    "language_level": "3", "boundscheck": False, "wraparound": False, "cdivision": True, "initializedcheck": False,
}  # fmt: skip


def extensions() -> list[Extension]:
    """The modules of the core; none where Cython is missing."""
    try:
        from Cython.Build import cythonize
    except ImportError:
        return []
    found = [
        Extension(
            ".".join(path.relative_to(SOURCE).with_suffix("").parts),
            [str(path)],
            define_macros=[("TANDEM_CORE_SOURCE", f'"{digest()}"')],
            extra_compile_args=["-O2", "-fno-strict-aliasing"],
            optional=True,
        )
        for path in (declared.with_suffix(".py") for declared in DECLARED)
        if path.exists()
    ]
    return cythonize(
        found, include_path=[str(SOURCE)], build_dir="build/core", compiler_directives=DIRECTIVES, quiet=True
    )


def digest() -> str:
    """See `tandemmq.store.compiled_core`."""
    summed = hashlib.sha256()
    for declared in DECLARED:
        for path in (declared, declared.with_suffix(".py")):
            summed.update(path.read_bytes() if path.exists() else b"")
    return summed.hexdigest()[:16]


setup(ext_modules=extensions())
