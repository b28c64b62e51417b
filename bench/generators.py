"""The load generators: compiled when needed, run as processes, with the server's CPU time read at their marks."""

import json
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean

from bench.model import Sample, Unavailable

_SOURCES = Path(__file__).parent / "load"
_BUILT = Path(__file__).parent.parent / "build" / "bench"
_PING_LAUNCHES = 4
_FLAGS = ("-O2", "-std=gnu11", "-Wall", "-Wextra")


def grpc_load() -> Path:
    """The gRPC generator. Raises Unavailable."""
    return _build("grpc_load", ["grpc_load.c", "meter.c"], ["-lnghttp2"], needs="libnghttp2-dev")


def grpc_echo() -> Path:
    """The bare gRPC server in C. Raises Unavailable."""
    return _build("grpc_echo", ["grpc_echo.c"], ["-lnghttp2"], needs="libnghttp2-dev")


def wire_load() -> Path:
    """The generator for remoting, RESP and NATS. Raises Unavailable."""
    return _build("wire_load", ["wire_load.c", "meter.c"], [], needs="gcc")


def receive_load() -> Path:
    """The generator of consumers over gRPC. Raises Unavailable."""
    return _build("receive_load", ["receive_load.c", "meter.c"], ["-lnghttp2"], needs="libnghttp2-dev")


def nats_receive_load() -> Path:
    """The generator of consumers of NATS JetStream. Raises Unavailable."""
    return _build("nats_receive_load", ["nats_receive_load.c", "meter.c"], [], needs="gcc")


def c_walker() -> Path:
    """The C walker as a shared object. Raises Unavailable."""
    return _build("walker.so", ["walker.c"], ["-shared", "-fPIC"], needs="gcc")


def _build(name: str, sources: list[str], flags: list[str], needs: str) -> Path:
    target = _BUILT / name
    files = [_SOURCES / source for source in sources]
    newest = max(path.stat().st_mtime for path in _SOURCES.iterdir())
    if target.exists() and target.stat().st_mtime >= newest:
        return target
    compiler = shutil.which("cc")
    if compiler is None:
        raise Unavailable("no C compiler for the load generators: apt-get install gcc libc6-dev")
    _BUILT.mkdir(parents=True, exist_ok=True)
    done = subprocess.run(
        [compiler, *_FLAGS, "-o", str(target), *map(str, files), *flags], capture_output=True, text=True, check=False
    )
    if done.returncode:
        first = done.stderr.strip().splitlines()[:1] or ["no reason given"]
        raise Unavailable(f"{name} cannot be compiled ({first[0]}): apt-get install {needs}")
    return target


@dataclass(frozen=True)
class LoadShape:
    """How a generator presses: clients, what each keeps in flight, and for how long."""

    connections: int = 1
    in_flight: int = 1
    items: int = 1
    """Messages in one request."""
    warm: float = 0.5
    seconds: float = 1.6


def per_gigabyte(sample: Sample, sent: int = 0) -> Sample:
    """A run that counts bytes, not messages: those received, or `sent` bytes of each message. Raises Unavailable."""
    moved = sample["rate"] * sent / 1e9 if sent else sample["rx_gb_s"]
    if not moved:
        raise Unavailable("nothing came")
    return {"gb_s": moved, "cpu_s_gb": sample["cpu_s"] / moved, "client_cpu": sample["client_cpu"]}


def run(command: list[str], shape: LoadShape, cpu: Callable[[], float]) -> Sample:
    """One run of a generator; `cpu` reads the server's CPU seconds. Raises Unavailable when the load fails.

    One client with one request in flight is launched several times for a shorter while, and the mean is told: on which
    core the system lets it run, beside the server or with it, makes a factor of up to four for as long as it lives.
    """
    command = [*command, "--connections", str(shape.connections), "--items", str(shape.items)]
    launches = _PING_LAUNCHES if shape.connections == shape.in_flight == shape.items == 1 else 1
    command += ["--warm", str(shape.warm / launches), "--seconds", str(shape.seconds / launches)]
    samples = [_launch(command, cpu) for _ in range(launches)]
    return {metric: fmean(sample[metric] for sample in samples) for metric in samples[0]}


def _launch(command: list[str], cpu: Callable[[], float]) -> Sample:
    marks: dict[str, float] = {}
    last = ""
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        try:
            for line in process.stdout:
                if line.strip() in ("START", "END"):
                    marks[line.strip()] = cpu()
                else:
                    last = line
            complaint = process.stderr.read().strip()
        except BaseException:
            process.kill()
            raise
    if not last or process.returncode:
        raise Unavailable(f"the load failed: {complaint.splitlines()[0][:300] if complaint else 'no output'}")
    told = json.loads(last)
    messages, used = told["messages"], marks["END"] - marks["START"]
    sample = {
        "rate": messages / told["seconds"],
        "p50_us": told["p50_us"],
        "p99_us": told["p99_us"],
        "client_cpu": told["client_cpu"] / told["seconds"],
        "rx_gb_s": told["rx_bytes"] / told["seconds"] / 1e9,
        "cpu_s": used / told["seconds"],
    }
    if messages:
        sample["cpu_us"] = used / messages * 1e6
    return sample
