"""Programs that are built from the sources beside this file, and h2spec; outside of the repository, once.

They lie in ~/.cache/tandemmq/grpc-clients, under names that change with their sources. What a registry does not bring,
or what needs a tool that is not here, is a reason to skip; what does not compile is a failure.
"""

import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

SOURCES = Path(__file__).parent
CACHE = Path.home() / ".cache" / "tandemmq" / "grpc-clients"

_FETCH_SECONDS = 120
_BUILD_SECONDS = 300
_BUILD_ALL_SECONDS = 1_100
"""Where the compiler makes everything that the program needs."""
_H2SPEC = "github.com/summerwind/h2spec/cmd/h2spec"
_ENVIRONMENT = {"GOTOOLCHAIN": "local", "GOFLAGS": "-mod=readonly", "CGO_ENABLED": "0"}


class Missing(Exception):
    """Why a program cannot be had here."""


class Broken(Exception):
    """What a compiler said to our own source."""


@dataclass(frozen=True)
class Program:
    """How a program is made."""

    sources: str
    """Directory below SOURCES."""
    tools: Mapping[str, str]
    """Commands that are needed, and the packages that have them."""
    build: Callable[[Path], None]
    """Makes it in a directory that has a copy of the sources. Raises Missing, Broken."""
    command: Callable[[Path], list[str]]
    """What starts it, given that directory."""


def command_of(name: str) -> list[str]:
    """What starts a program of PROGRAMS; skips the test where it cannot be had."""
    outcome = _outcome(name)
    if isinstance(outcome, Missing):
        pytest.skip(f"{name}: {outcome}")
    if isinstance(outcome, Broken):
        pytest.fail(f"{name}: {outcome}")
    return outcome


@cache
def _outcome(name: str) -> list[str] | Missing | Broken:
    """Asked once: what a registry did not bring in time must not hold up every test."""
    try:
        return _made(name)
    except (Missing, Broken) as reason:
        return reason


def _made(name: str) -> list[str]:
    program = PROGRAMS[name]
    for tool, package in program.tools.items():
        if shutil.which(tool) is None:
            raise Missing(f"there is no {tool}: apt-get install {package}")
    files = sorted(path for path in (SOURCES / program.sources).iterdir() if path.is_file())
    digest = hashlib.sha256(b"".join(path.name.encode() + path.read_bytes() for path in files)).hexdigest()
    home = CACHE / f"{name}-{digest[:16]}"
    with _alone(name):
        if not home.exists():
            fresh = CACHE / f"{name}.new"
            shutil.rmtree(fresh, ignore_errors=True)
            shutil.copytree(SOURCES / program.sources, fresh)
            program.build(fresh)
            fresh.rename(home)
    return program.command(home)


@contextmanager
def _alone(name: str) -> Iterator[None]:
    """One process builds, the others wait for it."""
    CACHE.mkdir(parents=True, exist_ok=True)
    with (CACHE / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _fetch(home: Path, *command: str) -> str:
    """Runs what brings other people's code. Raises Missing."""
    return _run(Missing, _FETCH_SECONDS, home, *command)


def _compile(home: Path, *command: str, seconds: float = _BUILD_SECONDS) -> str:
    """Runs a compiler on our code. Raises Broken."""
    return _run(Broken, seconds, home, *command)


def _run(otherwise: type[Exception], seconds: float, home: Path, *command: str) -> str:
    environment = {**os.environ, **_ENVIRONMENT}
    try:
        done = subprocess.run(
            command, cwd=home, env=environment, capture_output=True, text=True, timeout=seconds, check=False
        )
    except subprocess.TimeoutExpired:
        raise otherwise(f"{command[0]} did not end within {seconds:.0f} s") from None
    if done.returncode:
        raise otherwise(f"{' '.join(command[:3])}: {(done.stdout + done.stderr).strip()[-2000:]}")
    return done.stdout


def _build_go(home: Path) -> None:
    _fetch(home, "go", "mod", "download")
    _compile(home, "go", "build", "-o", "client", ".")


def _build_h2spec(home: Path) -> None:
    _fetch(home, "go", "mod", "download")
    _compile(home, "go", "build", "-o", "h2spec", _H2SPEC)


def _build_node(home: Path) -> None:
    _fetch(home, "npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund")


def _build_python(home: Path) -> None:
    _fetch(home, sys.executable, "-m", "venv", "venv")
    _fetch(home, "venv/bin/pip", "install", "-q", "--disable-pip-version-check", "-r", "requirements.txt")


def _build_java(home: Path) -> None:
    _fetch(home, "mvn", "-B", "-q", "dependency:build-classpath", "-Dmdep.outputFile=classpath.txt")
    jars = (home / "classpath.txt").read_text()
    sources = [path.name for path in home.glob("*.java")]
    _compile(home, "javac", "-encoding", "UTF-8", "-proc:none", "-cp", jars, "-d", "classes", *sources)


def _build_cpp(home: Path) -> None:
    try:
        flags = _fetch(home, "pkg-config", "--cflags", "--libs", "grpc++").split()
    except Missing:
        raise Missing("there is no grpc++: apt-get install libgrpc++-dev") from None
    _compile(home, "g++", "-std=c++17", "-Wall", "-Wextra", "-o", "client", "client.cc", *flags)


def _build_rust(home: Path) -> None:
    """The tracked lock has versions and checksums; where they come from is what this machine's cargo says."""
    lock = home / "Cargo.lock"
    pinned = lock.read_text()
    lock.unlink()
    _fetch(home, "cargo", "generate-lockfile")
    source = next(line for line in lock.read_text().splitlines() if line.startswith("source = "))
    lock.write_text(pinned.replace("\nchecksum = ", f"\n{source}\nchecksum = "))
    _fetch(home, "cargo", "fetch", "--locked")
    _compile(home, "cargo", "build", "--locked", "--offline", seconds=_BUILD_ALL_SECONDS)


def _java(home: Path) -> list[str]:
    jars = (home / "classpath.txt").read_text()
    options = ["-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-XX:-UsePerfData", "-Xmx512m"]
    return ["java", *options, "-cp", f"{home / 'classes'}{os.pathsep}{jars}", "Client"]


_GO = {"go": "golang"}
PROGRAMS = {
    "go": Program("go", _GO, _build_go, lambda home: [str(home / "client")]),
    "h2spec": Program("go", _GO, _build_h2spec, lambda home: [str(home / "h2spec")]),
    "node": Program(
        "node", {"node": "nodejs", "npm": "npm"}, _build_node, lambda home: ["node", str(home / "client.js")]
    ),
    "java": Program("java", {"mvn": "maven", "javac": "default-jdk-headless"}, _build_java, _java),
    "cpp": Program("cpp", {"g++": "g++", "pkg-config": "pkg-config"}, _build_cpp, lambda home: [str(home / "client")]),
    "rocketmq5-python": Program(
        "../rocketmq5/python", {}, _build_python, lambda home: [str(home / "venv/bin/python"), str(home / "client.py")]
    ),
    "rocketmq5-node": Program(
        "../rocketmq5/node",
        {"node": "nodejs", "npm": "npm"},
        _build_node,
        lambda home: ["node", str(home / "client.js")],
    ),
    "rocketmq5-java": Program(
        "../rocketmq5/java", {"mvn": "maven", "javac": "default-jdk-headless"}, _build_java, _java
    ),
    "rocketmq5-rust": Program(
        "../rocketmq5/rust", {"cargo": "cargo"}, _build_rust, lambda home: [str(home / "target/debug/client")]
    ),
    "rocketmq5-go": Program("../rocketmq5/go", _GO, _build_go, lambda home: [str(home / "client")]),
}
"""By what tests call them."""
