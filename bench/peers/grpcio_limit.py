"""The most that grpcio can give: a server that answers with constant bytes and does nothing else.

Run as `python -m bench.peers.grpcio_limit PORT ANSWER_SIZE`, on the same loop and options as the store.
"""

import sys
from collections.abc import AsyncIterator
from pathlib import Path

import grpc
import uvloop

from bench import payloads
from bench.generators import Shape, grpc_load, run
from bench.model import Sample
from bench.process import Server, free_port


class GrpcioLimit:
    """The bare server as a contestant."""

    name = "bare grpcio"

    def __init__(self, directory: Path, answer_size: int) -> None:
        port = free_port()
        command = [sys.executable, "-m", "bench.peers.grpcio_limit", str(port), str(answer_size)]
        environment = {"PYTHONPATH": str(Path(__file__).parents[2])}
        self.server = Server("grpcio-limit", command, directory, port, environment)
        self._data = directory.parent / f"{directory.name}-load"

    def start(self) -> None:
        """Start it."""
        self.server.start()

    def send(self, shape: Shape) -> Sample:
        """A unary call with a message in it; what any grpcio server takes before it does anything."""
        return self.call("Get", "unary", payloads.body(), shape)

    def send_stream(self, shape: Shape) -> Sample:
        """A stream of requests as large as our batches, each answered."""
        data = payloads.write(self._data, "batch", payloads.encoded_batch(shape.items))
        command = [str(grpc_load()), "--target", self.server.target, "--path", "/bench.Limit/Each", "--mode", "bidi"]
        command += ["--data", str(data), "--window", str(shape.in_flight)]
        return run(command, shape, self.server.cpu)

    def call(self, method: str, mode: str, request: bytes, shape: Shape) -> Sample:
        """`Get` (unary) or `Stream` (answers until cancelled), with any request."""
        data = payloads.write(self._data, f"request-{len(request)}", request)
        command = [str(grpc_load()), "--target", self.server.target, "--path", f"/bench.Limit/{method}"]
        command += [
            "--mode",
            mode,
            "--take",
            str(payloads.TAKE),
            "--data",
            str(data),
            "--streams",
            str(shape.in_flight),
        ]
        return run(command, shape, self.server.cpu)


async def _serve(port: int, size: int) -> None:
    answer = bytes(size)

    async def get(request: bytes, context: object) -> bytes:
        return answer

    async def stream(requests: AsyncIterator[bytes], context: object) -> AsyncIterator[bytes]:
        while True:
            yield answer

    async def each(requests: AsyncIterator[bytes], context: object) -> AsyncIterator[bytes]:
        async for _ in requests:
            yield answer

    handlers: dict[str, grpc.RpcMethodHandler[bytes, bytes]] = {
        "Get": grpc.unary_unary_rpc_method_handler(get),
        "Each": grpc.stream_stream_rpc_method_handler(each),
        "Stream": grpc.stream_stream_rpc_method_handler(stream),
    }
    options = [("grpc.max_receive_message_length", -1), ("grpc.max_send_message_length", -1)]
    server = grpc.aio.server(options=options)
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler("bench.Limit", handlers),))
    server.add_insecure_port(f"127.0.0.1:{port}")
    await server.start()
    await server.wait_for_termination()


if __name__ == "__main__":
    uvloop.run(_serve(int(sys.argv[1]), int(sys.argv[2])))
