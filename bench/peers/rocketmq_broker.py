"""A real RocketMQ broker as a process, from its published jars, without a name server.

Maven brings the jars once, into its own cache; class paths are kept under ~/.cache/tandem-bench. Used by the benchmarks
and by the tests of tests/interop.
"""

import fcntl
import os
import shutil
import socket
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from bench.model import Unavailable
from bench.process import ServerProcess, free_port

_CACHE = Path.home() / ".cache" / "tandem-bench"
_RESOLVE_SECONDS = 600.0
_NEIGHBOURHOOD = 4
_given: list[int] = []
"""Ports that brokers of this process were given."""


_POM = """<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>tandemmq.bench</groupId><artifactId>rocketmq-peer</artifactId><version>1</version><packaging>pom</packaging>
  <dependencies>{dependencies}</dependencies>
</project>
"""

_DEPENDENCY = """
    <dependency>
      <groupId>org.apache.rocketmq</groupId><artifactId>rocketmq-{name}</artifactId><version>{version}</version>
    </dependency>"""

_LOGBACK = """<configuration>
  <appender name="file" class="ch.qos.logback.core.FileAppender">
    <file>{file}</file><encoder><pattern>%d %p %c - %m%n</pattern></encoder>
  </appender>
  <root level="INFO"><appender-ref ref="file"/></root>
</configuration>
"""

# What RocketMQ's own start script opens to it on Java 9 and later: it unmaps files through JDK internals.
OPENED = [
    f"--add-{what}=java.base/{package}=ALL-UNNAMED"
    for what, package in [("opens", "java.nio"), ("opens", "sun.nio.ch"), ("opens", "jdk.internal.ref")]
]


def class_path(version: str, seconds: float = _RESOLVE_SECONDS, parts: Sequence[str] = ("broker",)) -> str:
    """The jars of the broker, or of other parts, resolved by Maven within `seconds` if need be. Raises Unavailable."""
    cache = _CACHE / "-".join(["rocketmq", *parts[parts == ("broker",) :], version])
    listing = cache / "classpath.txt"
    if listing.exists() and all(Path(jar).exists() for jar in listing.read_text().split(os.pathsep)):
        return listing.read_text()
    if shutil.which("mvn") is None:
        raise Unavailable("RocketMQ's jars need Maven: apt-get install maven")
    cache.mkdir(parents=True, exist_ok=True)
    dependencies = "".join(_DEPENDENCY.format(name=part, version=version) for part in parts)
    (cache / "pom.xml").write_text(_POM.format(dependencies=dependencies))
    fresh = cache / f"classpath.{os.getpid()}.tmp"
    command = ["mvn", "-B", "-q", "dependency:build-classpath", f"-Dmdep.outputFile={fresh}"]
    try:
        with (_CACHE / "maven.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)  # two Mavens would write the same jars into their cache
            done = subprocess.run(command, cwd=cache, capture_output=True, text=True, timeout=seconds, check=False)
    except subprocess.TimeoutExpired:
        raise Unavailable(f"Maven did not bring RocketMQ {version} within {seconds:.0f} s: try again") from None
    if done.returncode or not fresh.exists():
        output = (done.stdout + done.stderr).strip().splitlines()
        reason = next((line for line in output if "[ERROR]" in line), "no reason given")
        raise Unavailable(f"Maven cannot bring RocketMQ {version}: {reason[:300]}")
    fresh.rename(listing)
    return listing.read_text()


def broker(
    name: str, version: str, home: Path, settings: Mapping[str, object], jvm: Sequence[str], port: int | None = None
) -> ServerProcess:
    """A broker that will listen on `port` (a free one unless given), with `settings` beside name and address.

    Configuration and logs lie in `home`. Raises Unavailable without Java or jars.
    """
    java = shutil.which("java")
    if java is None:
        raise Unavailable("RocketMQ needs Java: apt-get install openjdk-17-jre-headless")
    jars = class_path(version)
    port = port or _port_with_neighbours()
    (home / "conf").mkdir(parents=True, exist_ok=True)
    (home / "conf" / "logback_broker.xml").write_text(_LOGBACK.format(file=home / "broker.log"))  # 4.x insists on one
    conf = home / "broker.conf"
    own = {"brokerName": name, "brokerId": 0, "brokerIP1": "127.0.0.1", "listenPort": port, "haListenPort": port + 1}
    conf.write_text("".join(f"{key}={value}\n" for key, value in {**own, **settings}.items()))
    command = [java, *jvm, *OPENED, f"-Duser.home={home}", "-cp", jars]
    command += ["org.apache.rocketmq.broker.BrokerStartup", "-c", str(conf)]
    return ServerProcess(name, command, home, port, {"ROCKETMQ_HOME": str(home)})


def _port_with_neighbours() -> int:
    """A port with room around it: the broker also listens two below (its "VIP" port) and one above (replication)."""
    while True:
        port = free_port()
        apart = all(abs(port - other) > _NEIGHBOURHOOD for other in _given)  # two may be made before one is started
        if apart and 2_000 < port < 65_000 and all(_is_free(neighbour) for neighbour in (port - 2, port + 1)):
            _given.append(port)
            return port


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True
