"""The transport's soak: damaged inputs by the million on every core, then damaged connections, then the oracle.

    python -m tests.faults.soak --transport [--inputs 10000000] [--seed 7]

Stops at the first fault and prints what it takes to see it again. The seed of a run is printed first.
"""

import asyncio
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from tests.faults.transport_mutations import Mutator
from tests.faults.transport_probe import serving
from tests.faults.transport_recording import record
from tests.faults.transport_under_fire import check_complaints, under_fire

REPOSITORY = Path(__file__).resolve().parents[2]
INPUTS = 10_000_000
PIECE = 100_000
"""Inputs of one process: short enough that its memory can be judged, and that progress is seen."""
SOCKET_SHARE = 500
"""For so many inputs below sockets, one goes through a socket."""
ORACLE_SHARE = 2000
"""And for so many, one script is played to both servers."""


def soak(seed: int, inputs: int) -> int:
    """The whole soak; 0, or 1 for a fault."""
    say(f"transport: {inputs:,} inputs, seed {seed}")
    return below_sockets(seed, inputs) or through_sockets(seed, inputs // SOCKET_SHARE) or oracle(seed, inputs)


def say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def start(seed: int, first: int, inputs: int) -> "subprocess.Popen[str]":
    command = [sys.executable, "-m", "tests.faults.transport_fuzz", "--record", "--seed", str(seed)]
    command += ["--first", str(first), "--inputs", str(inputs)]
    return subprocess.Popen(command, cwd=REPOSITORY, stdout=subprocess.PIPE, text=True)


def below_sockets(seed: int, inputs: int) -> int:
    """One process for each core, a piece of the inputs at a time."""
    begun, done, firsts = time.monotonic(), 0, list(range(0, inputs, PIECE))
    largest: dict[str, int] = {"growth": 0}
    running: dict[subprocess.Popen[str], int] = {}
    try:
        while firsts or running:
            while firsts and len(running) < (os.cpu_count() or 1):
                first = firsts.pop(0)
                running[start(seed, first, min(PIECE, inputs - first))] = first
            process = next(iter(running))
            said = process.communicate()[0]
            del running[process]
            report: dict[str, Any] = json.loads(said) if said else {"fault": "the process died"}
            if "fault" in report:
                say(json.dumps(report, indent=1))
                return 1
            done += report["inputs"]
            largest["growth"] = max(largest["growth"], report["growth"])
            rate = done / (time.monotonic() - begun)
            say(f"  {done:>12,} inputs, {rate:,.0f}/s, {report['cpu_us_per_input']} us of CPU each")
    finally:
        for process in running:
            process.kill()
            process.wait()
    say(f"below sockets: {done:,} inputs without a fault; no process grew by more than {largest['growth']:,} bytes")
    return 0


def through_sockets(seed: int, inputs: int) -> int:
    """Damaged connections to a real server beside a client that must not notice."""
    with tempfile.TemporaryFile("w+") as complaints:
        with serving("fast", complaints) as served:
            report = asyncio.run(under_fire(served, Mutator(seed, record()), max(1000, inputs)))
        check_complaints(complaints)
    say(f"through sockets: {report}")
    return 0


def oracle(seed: int, inputs: int) -> int:
    """Legal scripts to grpcio's server and ours."""
    command = [sys.executable, "-m", "tests.faults.transport_oracle", "--seed", str(seed)]
    command += ["--examples", str(max(100, inputs // ORACLE_SHARE))]
    outcome = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, check=False)
    say(f"oracle: {outcome.stdout.strip() or outcome.stderr[-6000:]}")
    return outcome.returncode
