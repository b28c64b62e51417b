"""Builds the compiled core where there is Cython and a C compiler; without them the package is whole all the same.

TANDEMMQ_PURE=1 leaves the core out, for a wheel that any machine takes. Everything else about the package is in
pyproject.toml.
"""

import hashlib
import os
from pathlib import Path

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

SOURCE = Path("src")
ROOMS = ("tandemmq/common/grpc_transport", "tandemmq/store")
DECLARED = sorted(path for room in ROOMS for path in SOURCE.glob(f"{room}/**/compiled/*.pxd"))
"""What is compiled: the module beside each of these, where there is one."""

DIRECTIVES = {
    "language_level": "3", "boundscheck": False, "wraparound": False, "cdivision": True, "initializedcheck": False,
}  # fmt: skip


def extensions() -> list[Extension]:
    """The modules of the core; none where Cython is missing, or a wheel for any machine is made."""
    if os.environ.get("TANDEMMQ_PURE"):
        return []
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


class BuildWherePossible(build_ext):
    """Goes on without the core where it cannot be built, whatever the reason."""

    def build_extension(self, ext: Extension) -> None:
        """Build one module."""
        try:
            super().build_extension(ext)
        except Exception as error:  # noqa: BLE001 - a missing compiler shows in many ways
            self.warn(f"{ext.name} is not built: {error}")
            self.extensions = [one for one in self.extensions if one is not ext]


setup(ext_modules=extensions(), cmdclass={"build_ext": BuildWherePossible})
