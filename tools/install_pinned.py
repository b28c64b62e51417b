"""Installs what a project needs to run, and no more, into a virtual environment: pinned and checked by constraints.txt.

pip checks hashes of a whole file, and the file here holds what developers and Spark need too (2 GB). So packages are
installed level by level: those asked for, then those that they ask for. The environment needs no pip of its own.

    python tools/install_pinned.py ENVIRONMENT [--from pyproject.toml [--extra NAME]...] [--without NAME]... [NAME...]
"""

import argparse
import importlib.metadata
import re
import subprocess
import sys
import tempfile
import tomllib
from collections import defaultdict
from collections.abc import Iterable, Mapping
from pathlib import Path

try:
    from packaging.requirements import Requirement
except ImportError:  # a Python with nothing but pip, which brings its own copy
    from pip._vendor.packaging.requirements import Requirement  # type: ignore[assignment, unused-ignore]


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("environment", type=Path, help="a virtual environment, of this Python")
    parser.add_argument("names", nargs="*", help="packages")
    parser.add_argument("--from", dest="project", type=Path, help="and the dependencies of this pyproject.toml")
    parser.add_argument("--extra", action="append", default=[], help="and those of one of its extras")
    parser.add_argument("--without", action="append", default=[], help="a package to leave out, whoever asks for it")
    parser.add_argument("--constraints", type=Path, default=Path("constraints.txt"))
    given = parser.parse_args()
    wanted = set(given.names)
    if given.project is not None:
        wanted.update(dependencies(given.project, given.extra))
    install(given.environment, names_of(wanted), read_pins(given.constraints), names_of(given.without))


def dependencies(project: Path, extras: Iterable[str]) -> list[str]:
    """What a pyproject.toml asks for, with extras that name no others. KeyError: there is no such extra."""
    told = tomllib.loads(project.read_text())["project"]
    lists = [told["dependencies"], *(told["optional-dependencies"][extra] for extra in extras)]
    return [str(one) for names in lists for one in names]


def install(environment: Path, names: set[str], pins: Mapping[str, str], without: set[str]) -> None:
    """Installs `names` and what they need. KeyError: a package that is not pinned."""
    pip = [sys.executable, "-m", "pip", "--python", str(environment / "bin" / "python"), "--quiet"]
    done = set(without)
    while missing := names - done:
        with tempfile.NamedTemporaryFile("w", suffix=".txt") as requirements:
            requirements.write("".join(pins[name] for name in sorted(missing)))
            requirements.flush()
            options = ["--no-deps", "--no-compile", "--require-hashes", "--requirement", requirements.name]
            subprocess.run([*pip, "install", *options], check=True)
        done |= missing
        packages = [str(path) for path in environment.glob("lib/python*/site-packages")]
        for one in importlib.metadata.distributions(path=packages):
            names |= names_of(one.requires or ())


def names_of(requirements: Iterable[str]) -> set[str]:
    """The names of those that hold here and without extras, as package indexes compare names."""
    found = [Requirement(text) for text in requirements]
    return {_normal(one.name) for one in found if one.marker is None or one.marker.evaluate({"extra": ""})}


def read_pins(constraints: Path) -> dict[str, str]:
    """The lines of each package: versions, markers, hashes."""
    pins: dict[str, str] = defaultdict(str)
    for block in re.split(r"^(?=[A-Za-z0-9])", constraints.read_text(), flags=re.MULTILINE):
        name, pinned, _ = block.partition("==")
        if pinned:
            pins[_normal(name)] += block
    return dict(pins)


def _normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name.strip()).lower()


if __name__ == "__main__":
    main()
