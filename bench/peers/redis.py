"""Redis Streams: XADD into an append-only file, synced each second or before each answer."""

import shutil
from pathlib import Path

from bench import payloads
from bench.generators import LoadShape, run, wire_load
from bench.model import Sample, Unavailable
from bench.process import ServerProcess, free_port


class Redis:
    """A Redis server. `fsync` is its appendfsync: everysec or always."""

    def __init__(self, directory: Path, fsync: str) -> None:
        binary = shutil.which("redis-server")
        if binary is None:
            raise Unavailable("Redis is not installed: apt-get install redis-server")
        self.name = f"Redis {fsync}"
        port = free_port()
        command = [binary, "--port", str(port), "--bind", "127.0.0.1", "--dir", str(directory), "--save", ""]
        command += ["--appendonly", "yes", "--appendfsync", fsync, "--auto-aof-rewrite-percentage", "0"]
        self.server = ServerProcess(f"redis-{fsync}", command, directory, port)
        self._data = directory.parent / f"{directory.name}-load"

    def start(self) -> None:
        """Start it."""
        self.server.start()

    def send(self, shape: LoadShape) -> Sample:
        """Single XADDs; with `items`, pipelines of so many."""
        data = payloads.write(self._data, f"xadd-{shape.items}", payloads.resp_xadd(shape.items))
        command = [str(wire_load()), "--protocol", "resp", "--target", self.server.target, "--data", str(data)]
        command += ["--window", str(shape.in_flight), "--replies", str(shape.items)]
        return run(command, shape, self.server.cpu)
