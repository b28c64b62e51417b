"""A Docker engine for the tests: one that runs, else one that they start and leave no trace of."""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[2]
BASE_IMAGE = "python:3.11-slim-bookworm"
_STARTER = REPOSITORY.parent / "shared" / "tools" / "docker-engine"
"""At our workplace: starts dockerd, and makes a stand-in of the base image from Debian's packages."""

_FORWARDING = Path("/proc/sys/net/ipv4/ip_forward")
_TABLES = ("filter", "nat")


@contextmanager
def running_engine() -> Iterator[None]:
    """Skips where there is no engine and none can be started."""
    if not shutil.which("docker"):
        pytest.skip("there is no docker command")
    if _ok(["docker", "info"]):
        yield
        return
    if os.geteuid() != 0 or not _STARTER.exists():
        pytest.skip("no Docker engine runs, and none can be started here")
    with _network_as_found():
        # dockerd lives on with the starter's standard output: a pipe would never end.
        started = subprocess.run([_STARTER, "up"], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, check=False)
        try:
            if started.returncode:
                pytest.skip(f"{_STARTER.name} could not start a Docker engine (exit code {started.returncode})")
            yield
        finally:
            subprocess.run([_STARTER, "down"], check=False, timeout=200)
            _wait_until_gone()


def docker_with_buildkit() -> list[str]:
    """A docker command that can give secrets to a build: newer ones want the plug-in buildx for that."""
    for directory in os.get_exec_path():
        command = Path(directory) / "docker"
        if command.exists() and (_ok([command, "buildx", "version"]) or _major(command) < 23):
            return [str(command)]
    pytest.skip("no docker command here can build with BuildKit (is the plug-in buildx missing?)")


def compose_command() -> list[str]:
    """`docker compose`, or its predecessor."""
    if _ok(["docker", "compose", "version"]):
        return ["docker", "compose"]
    if shutil.which("docker-compose"):
        return ["docker-compose"]
    pytest.skip("there is neither `docker compose` nor docker-compose")


def build(docker: Sequence[str], tag: str, dockerfile: Path | str, *, context: Path | str, text: str = "") -> None:
    """Builds an image, with this machine's network and its settings for pip. `text`: of a Dockerfile named `-`."""
    secrets = {"pip": Path("/etc/pip.conf"), "certificates": Path("/etc/ssl/certs/ca-certificates.crt")}
    given = [part for name, at in secrets.items() if at.exists() for part in ("--secret", f"id={name},src={at}")]
    named = ["--tag", tag, "--file", str(dockerfile), str(context)]

    def run() -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*docker, "build", "--network", "host", *given, *named],
            env={**os.environ, "DOCKER_BUILDKIT": "1"},
            input=text,
            capture_output=True,
            text=True,
            check=False,
        )

    done = run()
    if done.returncode and done.stderr.rstrip().endswith("unexpected EOF"):  # the engine itself has ended, or hung up
        sys.stderr.write(f"the engine hung up while it built {tag}; it is asked once more\n")
        if not _ok(["docker", "info"]) and _STARTER.exists():
            subprocess.run([_STARTER, "up"], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, check=False)
        done = run()
    assert done.returncode == 0, done.stderr[-3000:]


def has_image(name: str) -> bool:
    """Whether the engine has an image."""
    return _ok(["docker", "image", "inspect", name])


def is_stand_in() -> bool:
    """Whether the base image is the one that the starter makes, on a machine that reaches no registry."""
    return _STARTER.exists() and not docker("image", "inspect", BASE_IMAGE, "--format", "{{.RepoDigests}}").strip("[]")


def docker(*arguments: str) -> str:
    """What a docker command prints."""
    return subprocess.run(["docker", *arguments], check=True, capture_output=True, text=True).stdout.strip()


def _ok(command: Sequence[str | Path]) -> bool:
    return subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, check=False).returncode == 0


def _major(command: Path) -> int:
    ask = [str(command), "version", "--format", "{{.Client.Version}}"]
    version = subprocess.run(ask, capture_output=True, text=True, check=False).stdout
    major = version.partition(".")[0]
    return int(major) if major.isdigit() else sys.maxsize


@contextmanager
def _network_as_found() -> Iterator[None]:
    """An engine leaves rules and a bridge behind, which other tests' network namespaces would suffer from."""
    forwarding = _FORWARDING.read_text()
    rules = {table: _tables("-save", "-t", table) for table in _TABLES}
    try:
        yield
    finally:
        subprocess.run(["ip", "link", "delete", "docker0"], capture_output=True, check=False)
        for table, found in rules.items():
            _tables("", "-t", table, "-F")
            _tables("", "-t", table, "-X")
            _tables("-restore", text=found or f"*{table}\nCOMMIT\n")
        _FORWARDING.write_text(forwarding)


def _tables(ending: str, *arguments: str, text: str = "") -> str:
    command = [f"iptables{ending}", *arguments]
    try:
        return subprocess.run(command, input=text, capture_output=True, text=True, check=False).stdout
    except FileNotFoundError:  # not there yet: the starter installs it
        return ""


def _wait_until_gone() -> None:
    from tests.compose.waiting import eventually

    eventually(lambda: not _ok(["docker", "info"]), 200, "the engine goes on running")
