"""RocketMQ's own name server as a process, from its published jars."""

import os
import shutil
from pathlib import Path

import pytest

from bench.model import Unavailable
from bench.peers.rocketmq_broker import class_path
from bench.process import ServerProcess
from tandemmq.common.documents import java_json
from tests.faults.pair_process import free_port, until
from tests.interop.remoting import Remoting
from tests.names_process import GET_ROUTE, TOPIC_NOT_EXIST

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

    def route(self, topic: str) -> dict[str, dict[str, str]]:
        """Addresses by id, by broker; empty where there is no route."""
        with Remoting(self.server.port) as remoting:
            answer = remoting.call(GET_ROUTE, {"topic": topic})
        if answer.code == TOPIC_NOT_EXIST:
            return {}
        assert answer.code == 0, answer
        return {one["brokerName"]: one["brokerAddrs"] for one in java_json.loads(answer.body)["brokerDatas"]}

    def until_route(self, topic: str, expected: dict[str, dict[str, str]]) -> None:
        """Waits until a topic has that route."""
        until(lambda: self.route(topic) == expected, 60, lambda: f"the route of {topic} is {self.route(topic)}")

    def kill(self) -> None:
        """Ends it."""
        self.server.kill()
