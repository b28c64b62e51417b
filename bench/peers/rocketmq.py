"""A real RocketMQ broker from its published jars, without a name server.

Maven brings the jars once, into its own cache; the class path is kept under ~/.cache/tandem-bench.
"""

import os
import shutil
import subprocess
from pathlib import Path

from bench import payloads
from bench.generators import Shape, run, wire_load
from bench.model import Sample, Unavailable
from bench.process import Server, free_port

VERSION = "5.3.2"
_CACHE = Path.home() / ".cache" / "tandem-bench" / f"rocketmq-{VERSION}"
_HEAP = "1500m"
_RESOLVE_SECONDS = 600

_POM = f"""<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>tandemmq.bench</groupId><artifactId>rocketmq-peer</artifactId><version>1</version><packaging>pom</packaging>
  <dependencies>
    <dependency>
      <groupId>org.apache.rocketmq</groupId><artifactId>rocketmq-broker</artifactId><version>{VERSION}</version>
    </dependency>
  </dependencies>
</project>
"""

_CONF = """brokerClusterName=bench
brokerName=bench
brokerId=0
brokerIP1=127.0.0.1
listenPort={port}
haListenPort={ha_port}
storePathRootDir={root}
storePathCommitLog={root}/commitlog
autoCreateTopicEnable=true
flushDiskType={flush}
"""


def class_path() -> str:
    """The broker's jars, resolved by Maven if need be. Raises Unavailable."""
    listing = _CACHE / "classpath.txt"
    if listing.exists() and all(Path(jar).exists() for jar in listing.read_text().split(os.pathsep)):
        return listing.read_text()
    if shutil.which("mvn") is None:
        raise Unavailable("RocketMQ's jars need Maven: apt-get install maven")
    _CACHE.mkdir(parents=True, exist_ok=True)
    (_CACHE / "pom.xml").write_text(_POM)
    command = ["mvn", "-B", "-q", "dependency:build-classpath", f"-Dmdep.outputFile={listing}"]
    try:
        done = subprocess.run(
            command, cwd=_CACHE, capture_output=True, text=True, timeout=_RESOLVE_SECONDS, check=False
        )
    except subprocess.TimeoutExpired:
        raise Unavailable(f"Maven did not bring RocketMQ {VERSION} within {_RESOLVE_SECONDS} s: try again") from None
    if done.returncode or not listing.exists():
        last = (done.stdout + done.stderr).strip().splitlines()[-1:] or ["no reason given"]
        raise Unavailable(f"Maven cannot bring RocketMQ {VERSION}: {last[0][:200]}")
    return listing.read_text()


class RocketMQ:
    """A broker. `flush` is its flushDiskType: ASYNC_FLUSH or SYNC_FLUSH."""

    def __init__(self, directory: Path, flush: str, warm_up: float) -> None:
        java = shutil.which("java")
        if java is None:
            raise Unavailable("RocketMQ needs Java: apt-get install openjdk-17-jre-headless")
        self.name = f"RocketMQ {flush}"
        self._warm_up = warm_up
        port = _port_with_neighbours()
        directory.mkdir(parents=True, exist_ok=True)
        conf = directory / "broker.conf"
        conf.write_text(_CONF.format(port=port, ha_port=port + 1, root=directory / "store", flush=flush))
        command = [java, f"-Xms{_HEAP}", f"-Xmx{_HEAP}", f"-Duser.home={directory}", "-cp", class_path()]
        command += ["org.apache.rocketmq.broker.BrokerStartup", "-c", str(conf)]
        environment = {"ROCKETMQ_HOME": str(directory)}
        self.server = Server(f"rocketmq-{flush.lower()}", command, directory, port, environment)
        self._data = directory.parent / f"{directory.name}-load"

    def start(self) -> None:
        """Start it and let the JVM compile what is hot."""
        self.server.start()
        half = self._warm_up / 2
        self.send(Shape(64, 1, warm=half - 0.1, seconds=0.1))
        self.send(Shape(1, 8, items=payloads.BATCH, warm=half - 0.1, seconds=0.1))

    def send(self, shape: Shape) -> Sample:
        """Single sends; with `items`, batches of so many in one request."""
        batch = shape.items if shape.items > 1 else 0
        data = payloads.write(self._data, f"send-{batch}", payloads.remoting_frame(batch))
        command = [str(wire_load()), "--protocol", "remoting", "--target", self.server.target, "--data", str(data)]
        command += ["--window", str(shape.in_flight)]
        return run(command, shape, self.server.cpu)


def _port_with_neighbours() -> int:
    """A port with room around it: the broker also listens two below (its "VIP" port) and one above (replication)."""
    while True:
        port = free_port()
        if 2_000 < port < 65_000:
            return port
