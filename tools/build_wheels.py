"""Builds wheels with the compiled core for this Python, for x86-64 and aarch64, one without it, and looks at each.

    python tools/build_wheels.py [--into dist] [--compiler WHEEL]

Each is built by the same compiler, which comes as a Python package (tools/compiler.txt) and is thrown away afterwards;
it has the libraries of both processors, at the age that `GLIBC` says. So a wheel needs neither a machine of its own nor
an old one. For other Pythons run it with those. The one without a core is for all other machines and Pythons: there
everything runs in Python. pip takes it where no other fits.
"""

import argparse
import os
import pprint
import re
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import venv
import zipfile
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]
GLIBC = (2, 28)
"""The C library that a wheel wants at least: Debian 10, RHEL 8, Ubuntu 20.04."""
MACHINES = {"x86_64": 62, "aarch64": 183}
"""By ELF's numbers."""

_SOURCE = ("pyproject.toml", "setup.py", "MANIFEST.in", "README.md", "LICENSE", "src", "services", "spark")
_NEEDED = re.compile(rb"GLIBC_(\d+)\.(\d+)")
_MACHINE_AT = 18
"""In the header of an ELF file."""


class Module(NamedTuple):
    """What a wheel's compiled module is made for."""

    name: str
    machine: int
    glibc: tuple[int, int]


class UnfitWheel(Exception):
    """A wheel is not what it is called."""


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--into", type=Path, default=ROOT / "dist", help="directory of the wheels")
    parser.add_argument("--compiler", type=Path, help="wheel of the compiler, if it is here already")
    given = parser.parse_args()
    given.into.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="wheels-") as name:
        directory = Path(name)
        compiler = get_compiler(directory / "compiler", given.compiler)
        source = copy_source(directory / "source")
        headers = copy_headers(directory / "headers")
        for machine in MACHINES:
            wheel = build(machine, source, headers, compiler, given.into.resolve())
            modules = check(wheel, machine)
            print(f"{wheel.name}: {len(modules)} compiled modules, {wheel.stat().st_size / 1e6:.1f} MB")
        wheel = build_pure(source, given.into.resolve())
        print(f"{wheel.name}: in Python, {wheel.stat().st_size / 1e6:.1f} MB")


def get_compiler(directory: Path, wheel: Path | None) -> Path:
    """An environment with the compiler; gives its Python."""
    venv.create(directory, with_pip=False)
    python = directory / "bin" / "python"
    wanted = [str(wheel)] if wheel else ["--require-hashes", "--requirement", str(ROOT / "tools" / "compiler.txt")]
    how = ("--disable-pip-version-check", "--no-input", "install", "--quiet", "--no-deps")
    subprocess.run([sys.executable, "-m", "pip", "--python", str(python), *how, *wanted], check=True)
    return python


def copy_source(target: Path) -> Path:
    """What a wheel is made from, without what was compiled here."""
    target.mkdir()
    ignored = shutil.ignore_patterns("__pycache__", "*.so", "*.egg-info", "build")
    for name in _SOURCE:
        path = ROOT / name
        if path.is_dir():
            shutil.copytree(path, target / name, symlinks=True, ignore=ignored)
        else:
            shutil.copy(path, target / name)
    return target


def copy_headers(target: Path) -> Path:
    """Python's, for either processor: both are 64-bit Linux, and no header asks for more. Debian has two places."""
    shutil.copytree(sysconfig.get_path("include"), target)
    name = f"python{sys.version_info.major}.{sys.version_info.minor}"
    own = Path("/usr/include", sysconfig.get_config_var("MULTIARCH") or "", name, "pyconfig.h")
    if own.exists() and "/usr/include/" in f"{sysconfig.get_path('include')}/":
        shutil.copy(own, target / "pyconfig.h")
    return target


def build(machine: str, source: Path, headers: Path, compiler: Path, into: Path) -> Path:
    """One wheel. Raises subprocess.CalledProcessError."""
    rooms = source.parent / machine
    rooms.mkdir()
    target = f"{machine}-linux-gnu.{GLIBC[0]}.{GLIBC[1]}"
    command = rooms / "cc"
    command.write_text(f'#!/bin/sh\nexec "{compiler}" -m ziglang cc -target {target} -g0 -w -I"{headers}" "$@"\n')
    command.chmod(0o755)
    suffix = f"cpython-{sys.version_info.major}{sys.version_info.minor}-{machine}-linux-gnu"
    variables = {**sysconfig.get_config_vars(), "SOABI": suffix, "EXT_SUFFIX": f".{suffix}.so"}
    (rooms / "_sysconfigdata_wheels.py").write_text(f"build_time_vars = {pprint.pformat(variables)}\n")
    environment = {
        **os.environ,
        "CC": str(command),
        "LDSHARED": f"{command} -shared -s",
        "LDFLAGS": "",
        "PYTHONPATH": str(rooms),
        "PYTHONWARNINGS": "ignore",
        "_PYTHON_HOST_PLATFORM": f"linux-{machine}",
        "_PYTHON_SYSCONFIGDATA_NAME": "_sysconfigdata_wheels",
    }
    tag = f"manylinux_{GLIBC[0]}_{GLIBC[1]}_{machine}"
    words = ["--quiet", "bdist_wheel", "--plat-name", tag, "--dist-dir", str(rooms)]
    subprocess.run([sys.executable, "setup.py", *words], cwd=source, env=environment, check=True)
    [made] = rooms.glob("*.whl")
    return Path(shutil.move(made, into / made.name))


def build_pure(source: Path, into: Path) -> Path:
    """The wheel without a core. Raises UnfitWheel where it has compiled modules."""
    rooms = source.parent / "any"
    rooms.mkdir()
    environment = {**os.environ, "TANDEMMQ_PURE": "1", "PYTHONWARNINGS": "ignore"}
    words = ["--quiet", "build", "--build-base", str(rooms / "base"), "bdist_wheel", "--dist-dir", str(rooms)]
    words += ["--bdist-dir", str(rooms / "built")]
    subprocess.run([sys.executable, "setup.py", *words], cwd=source, env=environment, check=True)
    [made] = rooms.glob("*-py3-none-any.whl")
    if compiled := compiled_modules(made):
        raise UnfitWheel(f"{made.name} has compiled modules: {compiled[0].name}")
    return Path(shutil.move(made, into / made.name))


def check(wheel: Path, machine: str) -> list[Module]:
    """Its modules. Raises UnfitWheel where one is missing, for another processor, or wants a newer C library."""
    modules = compiled_modules(wheel)
    found = {re.sub(r"\.cpython-.*", "", one.name) for one in modules}
    wanted = {path.removesuffix(".pxd") for path in _names(wheel) if path.endswith(".pxd")} & {
        path.removesuffix(".py") for path in _names(wheel)
    }
    if found != wanted:
        raise UnfitWheel(f"{wheel.name} lacks {', '.join(sorted(wanted ^ found))}")
    for one in modules:
        if one.machine != MACHINES[machine] or f"-{machine}-" not in one.name:
            raise UnfitWheel(f"{one.name} in {wheel.name} is for another processor")
        if one.glibc > GLIBC:
            raise UnfitWheel(f"{one.name} in {wheel.name} wants glibc {one.glibc[0]}.{one.glibc[1]}")
    return modules


def compiled_modules(wheel: Path) -> list[Module]:
    """What each is for."""
    found = []
    with zipfile.ZipFile(wheel) as archive:
        for name in archive.namelist():
            if name.endswith(".so"):
                content = archive.read(name)
                needed = [(int(major), int(minor)) for major, minor in _NEEDED.findall(content)]
                machine = int.from_bytes(content[_MACHINE_AT : _MACHINE_AT + 2], "little")
                found.append(Module(name, machine, max(needed, default=(0, 0))))
    return found


def _names(wheel: Path) -> list[str]:
    with zipfile.ZipFile(wheel) as archive:
        return archive.namelist()


if __name__ == "__main__":
    main()
