"""NATS JetStream with a file store. Debian's version never syncs per message, so it takes no part in durable sends."""

import json
import shutil
import socket
from pathlib import Path
from typing import Any

from bench import payloads
from bench.generators import LoadShape, nats_receive_load, run, wire_load
from bench.model import Sample, Unavailable
from bench.process import ServerProcess, free_port

_STREAM = {
    "name": "BENCH",
    "subjects": ["bench.*"],
    "storage": "file",
    "retention": "limits",
    "discard": "old",
    "max_bytes": 2 << 30,
    "num_replicas": 1,
}
_CONSUMER = {"deliver_policy": "all", "ack_policy": "explicit", "ack_wait": 60_000_000_000, "max_ack_pending": 100_000}
_FILL_SECONDS = 1.0


class Nats:
    """A NATS server with one stream."""

    def __init__(self, directory: Path) -> None:
        binary = shutil.which("nats-server")
        if binary is None:
            raise Unavailable("NATS is not installed: apt-get install nats-server")
        self.name = "NATS JetStream"
        port = free_port()
        command = [binary, "-js", "-sd", str(directory / "data"), "-a", "127.0.0.1", "-p", str(port)]
        self.server = ServerProcess("nats", command, directory, port)
        self._data = directory.parent / f"{directory.name}-load"

    def start(self) -> None:
        """Start it and make the stream. Raises Unavailable."""
        self.server.start()
        self._ask("STREAM.CREATE.BENCH", _STREAM)

    def send(self, shape: LoadShape) -> Sample:
        """Single publishes, each acknowledged by the stream."""
        data = payloads.write(self._data, "publish", payloads.nats_publish())
        preamble = payloads.write(self._data, "preamble", payloads.nats_preamble())
        command = [str(wire_load()), "--protocol", "nats", "--target", self.server.target, "--data", str(data)]
        command += ["--preamble", str(preamble), "--window", str(shape.in_flight)]
        return run(command, shape, self.server.cpu)

    def fill(self, messages: int) -> None:
        """Put at least so many messages of 1 KiB into the stream. Raises Unavailable."""
        shape = LoadShape(1, 512, warm=0.1, seconds=_FILL_SECONDS)
        while self._messages() < messages:
            self.send(shape)

    def receive(self, shape: LoadShape, group: str) -> Sample:
        """Pull and acknowledge, each acknowledgement confirmed, from a durable consumer that begins here."""
        consumer = {**_CONSUMER, "durable_name": group}
        self._ask(f"CONSUMER.DURABLE.CREATE.BENCH.{group}", {"stream_name": "BENCH", "config": consumer})
        command = [str(nats_receive_load()), "--target", self.server.target, "--stream", "BENCH", "--consumer", group]
        try:
            return run(command, shape, self.server.cpu)
        finally:
            self._ask(f"CONSUMER.DELETE.BENCH.{group}", {})

    def _messages(self) -> int:
        return int(self._ask("STREAM.INFO.BENCH", {})["state"]["messages"])

    def _ask(self, subject: str, request: object) -> dict[str, Any]:
        """A call of JetStream's API. Raises Unavailable."""
        data = json.dumps(request).encode()
        with socket.create_connection(("127.0.0.1", self.server.port), timeout=10) as connection:
            connection.sendall(b'CONNECT {"verbose":false}\r\nSUB _INBOX.ask 1\r\n')
            connection.sendall(b"PUB $JS.API.%b _INBOX.ask %d\r\n%b\r\n" % (subject.encode(), len(data), data))
            with connection.makefile("rb") as lines:
                line = b""
                while not line.startswith(b"MSG "):
                    line = lines.readline()
                    if not line or line.startswith(b"-"):
                        raise Unavailable(f"NATS does not answer {subject}: {line!r}")
                answer: dict[str, Any] = json.loads(lines.read(int(line.split()[-1])))
        if "error" in answer:
            raise Unavailable(f"NATS refuses {subject}: {answer['error']}")
        return answer
