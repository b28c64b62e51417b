"""NATS JetStream with a file store. Debian's version never syncs per message, so it takes no part in durable sends."""

import json
import shutil
import socket
from pathlib import Path

from bench import payloads
from bench.generators import LoadShape, run, wire_load
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
        request = json.dumps(_STREAM).encode()
        with socket.create_connection(("127.0.0.1", self.server.port), timeout=10) as connection:
            connection.sendall(b'CONNECT {"verbose":false}\r\nSUB _INBOX.make 1\r\n')
            connection.sendall(b"PUB $JS.API.STREAM.CREATE.BENCH _INBOX.make %d\r\n%b\r\n" % (len(request), request))
            answer = b""
            while b"MSG " not in answer or b"}" not in answer.partition(b"MSG ")[2]:
                part = connection.recv(65536)
                if not part:
                    break
                answer += part
        if b'"error"' in answer or b"MSG " not in answer:
            raise Unavailable(f"NATS made no stream: {answer[-200:]!r}")

    def send(self, shape: LoadShape) -> Sample:
        """Single publishes, each acknowledged by the stream."""
        data = payloads.write(self._data, "publish", payloads.nats_publish())
        preamble = payloads.write(self._data, "preamble", payloads.nats_preamble())
        command = [str(wire_load()), "--protocol", "nats", "--target", self.server.target, "--data", str(data)]
        command += ["--preamble", str(preamble), "--window", str(shape.in_flight)]
        return run(command, shape, self.server.cpu)
