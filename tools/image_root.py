"""Gathers the root file system of a small image: this Python, a virtual environment, programs, what they link to.

    python tools/image_root.py TARGET ENVIRONMENT [PATH...]      files or directories to take along

Left out are the parts of Python's library that no service can use, tests and headers of packages, and debug symbols;
all modules are compiled, since a container's root may be read-only. Needs ldd and strip.
"""

import compileall
import os
import py_compile
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Callable, Iterator
from pathlib import Path

Ignored = Callable[[str, list[str]], set[str]]

_NOT_OF_PYTHON = shutil.ignore_patterns(
    *("__pycache__", "config-*", "dist-packages", "ensurepip", "idlelib", "lib2to3", "pydoc_data", "site-packages"),
    *("test", "tkinter", "turtle.py", "turtledemo"),
)
"""Of the standard library's directory."""

_NOT_OF_PACKAGES = shutil.ignore_patterns(
    *("__pycache__", "tests", "include", "f2py", "*.a", "*.pxd", "*.pyx", "*.pyi", "*.c", "*.h", "*.hpp")
)

_MERGED = ("bin", "sbin", "lib", "lib64")
"""Directories that are links into /usr."""


def main() -> None:
    """The command."""
    target, environment, *others = map(Path, sys.argv[1:])
    for name in _MERGED:
        (target / "usr" / name).mkdir(parents=True, exist_ok=True)
        (target / name).symlink_to(f"usr/{name}")
    library = Path(sysconfig.get_path("stdlib"))
    copy_tree(library, target, _NOT_OF_PYTHON)
    copy_tree(environment, target, _NOT_OF_PACKAGES)
    for path in (environment / "bin" / "python3", *others):
        if path.is_dir():
            copy_tree(path, target)
        else:
            copy_chain(path, target)
    for binary in list(elf_files(target)):
        for needed in libraries_of(Path("/") / binary.relative_to(target)):
            copy_chain(needed, target)
    for binary in elf_files(target):
        if not binary.parent.name.endswith(".libs"):  # laid out anew by auditwheel: strip would break them
            subprocess.run(["strip", "--strip-unneeded", binary], check=True)
    compiled(target, library, environment)


def copy_tree(tree: Path, target: Path, without: Ignored | None = None) -> None:
    """A directory under the same path, but for what is ignored."""
    shutil.copytree(tree, inside(target, tree), symlinks=True, dirs_exist_ok=True, ignore=without)


def copy_chain(path: Path, target: Path) -> None:
    """A file under the same path; where it is a link, the link and what it leads to."""
    copy = inside(target, path)
    if not os.path.lexists(copy):
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(path, copy, follow_symlinks=False)
    if path.is_symlink():
        copy_chain(path.parent / path.readlink(), target)


def inside(target: Path, path: Path) -> Path:
    """Where a path of this machine lies in the target; /lib and its like are links into /usr there."""
    resolved = path.parent.resolve() / path.name
    return target / resolved.relative_to("/")


def elf_files(target: Path) -> Iterator[Path]:
    """Programs and shared objects."""
    for path in target.rglob("*"):
        if path.is_file() and not path.is_symlink():
            with path.open("rb") as file:
                if file.read(4) == b"\x7fELF":
                    yield path


def libraries_of(binary: Path) -> Iterator[Path]:
    """What the dynamic linker would load with it, itself included."""
    done = subprocess.run(["ldd", binary], capture_output=True, text=True, check=False)
    for line in done.stdout.splitlines():
        found = [word for word in line.split() if word.startswith("/")]
        if found:
            yield Path(found[0])


def compiled(target: Path, *trees: Path) -> None:
    """Byte code of every module, which is never compared with its source again."""
    for tree in trees:
        compileall.compile_dir(
            str(target / tree.relative_to("/")),
            stripdir=str(target),
            quiet=1,
            workers=0,
            invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH,
        )


if __name__ == "__main__":
    main()
