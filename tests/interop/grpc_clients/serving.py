"""The probe service as a process of its own, and other programs against it."""

import json
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.integration.grpc_transport.conftest import Certificates

REPOSITORY = Path(__file__).resolve().parents[3]

_NOBODYS_ERRORS = ("Exception in callback", "exception was never retrieved", "was never awaited", "Fatal Python error")
"""What asyncio writes to the log when a server loses track of something."""


@dataclass(frozen=True)
class Served:
    """Where the probe listens."""

    port: int
    target: str
    """As gRPC clients write it."""


@contextmanager
def probe(
    transport: str,
    directory: Path,
    address: str = "127.0.0.1:0",
    tls: Certificates | None = None,
    mutual: bool = False,
    module: str = "tests.grpc_probe",
) -> Iterator[Served]:
    """Serves until the block ends; its log must tell of no lost errors, and it must end by itself at SIGTERM."""
    command = [sys.executable, "-m", module, "--transport", transport, "--address", address]
    if tls is not None:
        command += ["--tls-cert", str(tls.server), "--tls-key", str(tls.server_key)]
        command += ["--tls-trust", str(tls.authority)] if mutual else []
    log = directory / "probe.log"
    with (
        log.open("w") as errors,
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, text=True, cwd=REPOSITORY) as process,
    ):
        try:
            assert process.stdout is not None
            ready = process.stdout.readline()
            assert ready.startswith("READY "), log.read_text()
            port = int(ready.split()[1])
            yield Served(port, address if address.startswith("unix") else f"{address.removesuffix(':0')}:{port}")
            assert process.poll() is None, f"the server has died:\n{log.read_text()}"
            process.send_signal(signal.SIGTERM)
            assert process.wait(90) == 0, log.read_text()
        finally:
            process.kill()
    said = log.read_text()
    assert not [error for error in _NOBODYS_ERRORS if error in said], said


def run(command: Sequence[str | Path], seconds: float = 450) -> subprocess.CompletedProcess[str]:
    """Runs a client to its end; a failure shows what it wrote."""
    done = subprocess.run(command, capture_output=True, text=True, timeout=seconds, check=False)
    assert done.returncode == 0, f"{command} ended with {done.returncode}:\n{done.stdout}{done.stderr}"
    return done


def checks(command: Sequence[str], expected: Sequence[str]) -> None:
    """Runs a client that writes a line of JSON for each check, and asserts that all `expected` were made and are ok."""
    lines = [json.loads(line) for line in run(command).stdout.splitlines()]
    assert [line for line in lines if not line["ok"]] == []
    assert [line["check"] for line in lines] == list(expected)
