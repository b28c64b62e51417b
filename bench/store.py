"""Our store as a contestant: a `tandemmq.store` process, and the requests that are sent to it."""

import sys
import time
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path

import grpc

from bench import payloads
from bench.generators import LoadShape, grpc_load, receive_load, run
from bench.model import Sample, Unavailable
from bench.process import ServerProcess, free_port
from tandemmq.common.settings.server_settings import ServerSettings
from tandemmq.delivery.v1 import delivery_pb2
from tandemmq.store.v1 import message_pb2, store_pb2, store_pb2_grpc

NAME = "TandemMQ"
FAST, GRPCIO = f"{NAME} fast", f"{NAME} grpcio"
TRANSPORTS = ("fast", "grpcio")
"""Values of the setting grpcTransport; the store is measured with each."""
_SERVICE = "/tandemmq.store.v1.Store"
_PUT_OK = ("--byte", "3", "--value", str(store_pb2.PUT_OK))
"""Where a SendResponse has its status: after tag and length of the receipt, and its own tag."""
_STEP = 0.003
_PULL_BYTES = 1 << 20


class Store:
    """A store process over a directory of its own; `settings` are lines of its broker.conf.

    `transport` is its grpcTransport and becomes part of its name; without one it has the default and the bare name.
    Raises Unavailable when the store has no such transport.
    """

    def __init__(
        self, directory: Path, *, transport: str | None = None, profile: str = "server", **settings: str | int
    ) -> None:
        self.name = f"{NAME} {transport}" if transport else NAME
        port = free_port()
        self.root = directory / "store"
        lines = {
            "storePathRootDir": str(self.root), "grpcPort": port, "metricsPort": 0, "internalPort": 0,
            "grpcHost": "127.0.0.1",
            "logLevel": "WARNING", **settings,
        }  # fmt: skip
        directory.mkdir(parents=True, exist_ok=True)
        conf = directory / "broker.conf"
        conf.write_text("".join(f"{name}={value}\n" for name, value in lines.items()))
        command = [sys.executable, "-m", "tandemmq.store", "--config", str(conf), "--profile", profile]
        self.server = ServerProcess(f"tandem-{directory.name}", command, directory, port, _transport_setting(transport))
        self._data = directory.parent / f"{directory.name}-load"

    def start(self, timeout: float = 60) -> float:
        """Start and wait for the first answer to a call; the seconds it took. Raises Unavailable."""
        begun = time.perf_counter()
        self.server.start(timeout)
        with grpc.insecure_channel(self.server.target) as channel:
            stub = store_pb2_grpc.StoreStub(channel)
            while True:
                try:
                    stub.GetLog(store_pb2.GetLogRequest(), timeout=timeout)  # costs the same, however many queues
                    return time.perf_counter() - begun
                except grpc.RpcError as error:
                    if time.perf_counter() - begun > timeout:
                        raise Unavailable(f"the store did not answer within {timeout:.0f} s: {error}") from None
                    time.sleep(_STEP)

    def warm_up(self, seconds: float) -> None:
        """Batches for a while, as the JVM of the peer gets: the store loads its compiled code under load."""
        self.send_encoded(LoadShape(1, 8, items=payloads.BATCH, warm=seconds, seconds=0.1))

    def send(
        self,
        shape: LoadShape,
        topic: str = payloads.TOPIC,
        queue_id: int | None = 0,
        *,
        no_wait: bool = False,
        cpu: Callable[[], float] | None = None,
    ) -> Sample:
        """Send, one message a call; each must be PUT_OK. `cpu` reads CPU seconds, of the store unless given."""
        request = store_pb2.SendRequest(message=message(topic, queue_id), no_wait=no_wait)
        data = payloads.write(self._data, f"send-{topic}-{no_wait}", request.SerializeToString())
        command = [*self._command("Send", data), "--streams", str(shape.in_flight), *_PUT_OK]
        return run(command, shape, cpu or self.server.cpu)

    def send_decoded(self, shape: LoadShape) -> Sample:
        """SendBatch of protobuf messages."""
        request = store_pb2.SendBatchRequest(messages=[message() for _ in range(shape.items)])
        return self._unary("decoded", "SendBatch", request.SerializeToString(), shape)

    def send_encoded(self, shape: LoadShape) -> Sample:
        """SendBatch of one EncodedBatch."""
        return self._unary("encoded", "SendBatch", encoded_request(shape.items), shape)

    def send_stream(self, shape: LoadShape) -> Sample:
        """SendStream of EncodedBatches, `in_flight` unanswered on each connection's stream."""
        data = payloads.write(self._data, "encoded", encoded_request(shape.items))
        command = [*self._command("SendStream", data), "--mode", "bidi", "--window", str(shape.in_flight)]
        return run(command, shape, self.server.cpu)

    def receive(self, shape: LoadShape, group: str) -> Sample:
        """Receive and acknowledge as a group that begins here: `items` messages a receive, one call to acknowledge."""
        wanted = delivery_pb2.ReceiveRequest(
            group=group, topic=payloads.TOPIC, max_messages=shape.items, invisible_ms=60_000, wait_ms=200
        )
        begun = delivery_pb2.AcknowledgeRequest(group=group, topic=payloads.TOPIC)
        service = "/tandemmq.delivery.v1.Delivery"
        command = [str(receive_load()), "--target", self.server.target, "--outcome", "2"]
        for option, method, data in (("receive", "Receive", wanted), ("ack", "Acknowledge", begun)):
            path = payloads.write(self._data, f"{option}-{group}-{shape.items}", data.SerializeToString())
            command += [f"--{option}", str(path), f"--{option}-path", f"{service}/{method}"]
        return run([*command, "--handle", "1.3", "--entry", "3"], shape, self.server.cpu)

    def fill(self, messages: int) -> int:
        """Put at least so many messages of 1 KiB into queue 0 of the topic; how many the queue then holds."""
        with grpc.insecure_channel(self.server.target) as channel:
            stub = store_pb2_grpc.StoreStub(channel)
            request = store_pb2.SendBatchRequest.FromString(encoded_request(1024))
            for _ in range(-(-messages // 1024)):
                stub.SendBatch(request)
            while True:
                offsets = stub.GetOffsets(store_pb2.GetOffsetsRequest(topic=payloads.TOPIC, queue_id=0))
                if offsets.queues and offsets.queues[0].max_offset >= messages:
                    return offsets.queues[0].max_offset
                time.sleep(0.05)

    def pull(self, shape: LoadShape) -> Sample:
        """Pull of raw records, 1 MiB an answer, always the same ones."""
        return self._unary("pull", "Pull", pull_request().SerializeToString(), shape)

    def pull_stream(self, shape: LoadShape) -> Sample:
        """PullStream of raw records, 1 MiB an answer, with unlimited credit."""
        request = store_pb2.PullStreamRequest(subscribe=pull_request())
        data = payloads.write(self._data, "pull-stream", request.SerializeToString())
        command = [
            *self._command("PullStream", data),
            "--mode",
            "download",
            "--take",
            str(payloads.TAKE),
            "--streams",
            str(shape.in_flight),
        ]
        return run(command, shape, self.server.cpu)

    def _unary(self, name: str, method: str, request: bytes, shape: LoadShape) -> Sample:
        data = payloads.write(self._data, f"{name}-{shape.items}", request)
        command = [*self._command(method, data), "--streams", str(shape.in_flight)]
        return run(command, shape, self.server.cpu)

    def _command(self, method: str, data: Path) -> list[str]:
        return [str(grpc_load()), "--target", self.server.target, "--path", f"{_SERVICE}/{method}", "--data", str(data)]


def _transport_setting(transport: str | None) -> dict[str, str]:
    """The environment that chooses a transport."""
    if transport is None:
        return {}
    if any(setting.name == "grpc_transport" for setting in fields(ServerSettings)):
        return {"TANDEM_GRPC_TRANSPORT": transport}
    if transport == "grpcio":  # the only one there is
        return {}
    raise Unavailable(f"{NAME} {transport}: the store has no setting grpcTransport yet")


def message(topic: str = payloads.TOPIC, queue_id: int | None = 0) -> message_pb2.Message:
    """The message that everybody sends."""
    made = message_pb2.Message(
        topic=topic,
        body=payloads.body(),
        tag=payloads.TAG,
        keys=[payloads.KEY],
        properties={"UNIQ_KEY": payloads.UNIQUE_KEY},
    )
    if queue_id is not None:
        made.queue_id = queue_id
    return made


def encoded_request(count: int) -> bytes:
    """A SendBatchRequest with one EncodedBatch."""
    batch = message_pb2.EncodedBatch(
        topic=payloads.TOPIC, queue_id=0, messages=payloads.encoded_batch(count), count=count
    )
    return store_pb2.SendBatchRequest(batches=[batch]).SerializeToString()


def pull_request() -> store_pb2.PullRequest:
    """Raw records from the beginning of queue 0, 1 MiB of them."""
    return store_pb2.PullRequest(
        topic=payloads.TOPIC, queue_id=0, offset=0, max_messages=32_768, max_bytes=_PULL_BYTES, form=message_pb2.RAW
    )
