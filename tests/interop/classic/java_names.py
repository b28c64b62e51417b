"""RocketMQ's own name server as a process, from its published jars."""

import os
import shutil
from pathlib import Path

import pytest

from bench.model import Unavailable
from bench.peers.rocketmq_broker import class_path
from bench.process import ServerProcess, free_port

_JVM = ["-Xms64m", "-Xmx256m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-XX:-UsePerfData"]
_START_SECONDS = 120.0


class JavaNames:
    """A name server of a version; skips the test where it cannot be had."""

    def __init__(self, version: str, home: Path) -> None:
        if shutil.which("java") is None:
            pytest.skip("RocketMQ needs Java: apt-get install openjdk-17-jre-headless")
        try:
            jars = class_path(version, 120.0, ("namesrv",))
        except Unavailable as reason:
            pytest.skip(str(reason))
        port = free_port()
        self.address = f"127.0.0.1:{port}"
        (home / "conf").mkdir(parents=True)
        (home / "conf" / "logback_namesrv.xml").write_text("<configuration><root level='OFF'/></configuration>")
        conf = home / "namesrv.conf"
        conf.write_text(f"listenPort={port}\nkvConfigPath={home}/kv.json\nrocketmqHome={home}\n")
        command = ["java", *_JVM, f"-Duser.home={home}", "-cp", jars, "org.apache.rocketmq.namesrv.NamesrvStartup"]
        environment = {**os.environ, "ROCKETMQ_HOME": str(home)}
        self.server = ServerProcess("names", [*command, "-c", str(conf)], home, port, environment)

    def start(self) -> None:
        """Starts, and waits until it listens. Raises Unavailable."""
        self.server.start(_START_SECONDS)

    def kill(self) -> None:
        """Ends it."""
        self.server.kill()
