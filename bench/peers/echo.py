"""Servers that answer with constant bytes as contestants: what a transport costs with nothing behind it."""

import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import grpc

from bench import payloads
from bench.generators import LoadShape, grpc_echo, grpc_load, run
from bench.model import Sample, Unavailable
from bench.peers.echo_server import SERVICE
from bench.process import ServerProcess, free_port

SMALL, LARGE = 64, 1 << 20
"""Bytes of the answers: a receipt has about so many, and a pull asks for so many."""
_READY_SECONDS = 20.0


class Echo:
    """One echo server. The methods are those of `echo_server`; every answer's length and status is checked."""

    def __init__(self, name: str, directory: Path, command: Callable[[int], list[str]]) -> None:
        self.name = name
        port = free_port()
        environment = {"PYTHONPATH": str(Path(__file__).parents[2])}
        self.server = ServerProcess(directory.name, command(port), directory, port, environment)
        self._data = directory.parent / f"{directory.name}-load"

    def start(self) -> None:
        """Start it and await its first answer. Raises Unavailable."""
        self.server.start()
        with grpc.insecure_channel(self.server.target) as channel:
            try:
                get: grpc.UnaryUnaryMultiCallable[bytes, bytes] = channel.unary_unary(f"/{SERVICE}/Get")
                answer = get(b"", timeout=_READY_SECONDS, wait_for_ready=True)
            except grpc.RpcError as error:
                raise Unavailable(f"{self.name} does not answer: {str(error)[:200]}") from None
        if len(answer) != SMALL:
            raise Unavailable(f"{self.name} answers with {len(answer)} bytes, not {SMALL}")

    def send(self, shape: LoadShape) -> Sample:
        """Unary calls of 1 KiB with a small answer."""
        return self._run("Get", payloads.body(), SMALL, ["--streams", shape.in_flight], shape)

    def send_stream(self, shape: LoadShape, request: bytes | None = None) -> Sample:
        """A stream on each connection, `in_flight` requests unanswered; as large as our batches unless given."""
        request = payloads.encoded_batch(shape.items) if request is None else request
        return self._run("Each", request, SMALL, ["--mode", "bidi", "--window", shape.in_flight], shape)

    def download(self, shape: LoadShape, request: bytes = b"") -> Sample:
        """Unary calls with large answers."""
        return self._run("Large", request, LARGE, ["--streams", shape.in_flight], shape)

    def download_stream(self, shape: LoadShape, request: bytes = b"") -> Sample:
        """A stream of large answers."""
        options: list[str | int] = ["--mode", "download", "--take", payloads.TAKE, "--streams", shape.in_flight]
        return self._run("Stream", request, LARGE, options, shape)

    def upload(self, shape: LoadShape, request: bytes) -> Sample:
        """Unary calls with large requests."""
        return self._run("Get", request, SMALL, ["--streams", shape.in_flight], shape)

    def upload_stream(self, shape: LoadShape, request: bytes) -> Sample:
        """Streams of `items` requests, answered at the end."""
        return self._run("Upload", request, SMALL, ["--mode", "upload", "--window", shape.items], shape)

    def _run(self, method: str, request: bytes, answer: int, options: Sequence[str | int], shape: LoadShape) -> Sample:
        data = payloads.write(self._data, f"request-{len(request)}", request)
        command = [str(grpc_load()), "--target", self.server.target, "--path", f"/{SERVICE}/{method}"]
        command += ["--data", str(data), "--answer", str(answer), *map(str, options)]
        return run(command, shape, self.server.cpu)


def python_echo(name: str, kind: str, directory: Path) -> Echo:
    """One of `echo_server`; `kind` is fast, aio or sync."""
    own = [sys.executable, "-m", "bench.peers.echo_server", kind]
    return Echo(name, directory, lambda port: [*own, str(port), str(SMALL), str(LARGE)])


def bare_grpcio(directory: Path) -> Echo:
    """The most that a store on grpcio could reach."""
    return python_echo("bare grpcio", "aio", directory)


def c_echo(name: str, directory: Path) -> Echo:
    """The same in C, on libnghttp2. Raises Unavailable."""
    binary = str(grpc_echo())
    return Echo(
        name, directory, lambda port: [binary, "--port", str(port), "--small", str(SMALL), "--large", str(LARGE)]
    )
