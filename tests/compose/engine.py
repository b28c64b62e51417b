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

_OWN_BASE = "tandemmq-test-base"
_DOCKERFILE_OF_BASE = f"""
FROM {BASE_IMAGE}
COPY pip.conf /etc/pip.conf
COPY certificates.pem /etc/own-certificates.pem
ENV PIP_CERT=/etc/own-certificates.pem
"""
"""As docs/install.md has it for those behind a package index of their own."""

_PIP, _CERTIFICATES = Path("/etc/pip.conf"), Path("/etc/ssl/certs/ca-certificates.crt")
_BUILT = "a-metasync"
"""The service of docker-compose.yml that says how the image is built."""

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


def compose_command() -> list[str]:
    """`docker compose`, or its predecessor."""
    if _ok(["docker", "compose", "version"]):
        return ["docker", "compose"]
    if shutil.which("docker-compose"):
        return ["docker-compose"]
    pytest.skip("there is neither `docker compose` nor docker-compose")


def build(tag: str, dockerfile: str, directory: Path) -> None:
    """Builds an image from the text of a Dockerfile and what lies in a directory, with this machine's network."""
    (directory / "Dockerfile").write_text(dockerfile)
    _until_built(tag, ["docker", "build", "--network", "host", "--tag", tag, str(directory)])


def build_base(directory: Path) -> str:
    """Builds an image with Python that knows this machine's package index; gives its name."""
    (directory / "pip.conf").write_bytes(_PIP.read_bytes() if _PIP.exists() else b"")
    (directory / "certificates.pem").write_bytes(_CERTIFICATES.read_bytes() if _CERTIFICATES.exists() else b"")
    build(_OWN_BASE, _DOCKERFILE_OF_BASE, directory)
    return _OWN_BASE


def build_product(base: str, directory: Path) -> None:
    """Builds the image of docker-compose.yml, by compose, as a new user does; with this machine's network."""
    override = directory / "network.yml"
    override.write_text(f"services: {{{_BUILT}: {{build: {{network: host}}}}}}\n")
    files = ("--file", str(REPOSITORY / "docker-compose.yml"), "--file", str(override))
    _until_built("tandemmq", [*compose_command(), *files, "build", _BUILT], TANDEM_BASE_IMAGE=base)


def _until_built(tag: str, command: Sequence[str], **environment: str) -> None:
    def run() -> subprocess.CompletedProcess[str]:
        given = {**os.environ, **environment}
        return subprocess.run(command, cwd=REPOSITORY, env=given, capture_output=True, text=True, check=False)

    done = run()
    if done.returncode and done.stderr.rstrip().endswith("unexpected EOF"):  # the engine itself has ended, or hung up
        sys.stderr.write(f"the engine hung up while it built {tag}; it is asked once more\n")
        if not _ok(["docker", "info"]) and _STARTER.exists():
            subprocess.run([_STARTER, "up"], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, check=False)
        done = run()
    assert done.returncode == 0, (done.stdout + done.stderr)[-3000:]


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
