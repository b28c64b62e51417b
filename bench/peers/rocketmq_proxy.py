"""RocketMQ's proxy in local mode: a broker in the same JVM, consumed by pop over gRPC; and its name server."""

import json
import shutil
from contextlib import suppress
from pathlib import Path

from bench import payloads, rocketmq5
from bench.generators import LoadShape
from bench.model import Sample, Unavailable
from bench.peers import rocketmq
from bench.peers.rocketmq_broker import OPENED, class_path
from bench.process import CpuMeter, ServerProcess, Servers, free_port

VERSION = "5.3.3"
_FILL_SECONDS = 2.0
_ROUNDS_OF_FILL = 60


class RocketMQProxy:
    """A name server and a proxy. `flush` is the broker's flushDiskType."""

    def __init__(self, directory: Path, flush: str) -> None:
        java = shutil.which("java")
        if java is None:
            raise Unavailable("RocketMQ needs Java: apt-get install openjdk-17-jre-headless")
        jars = class_path(VERSION, parts=("proxy", "namesrv"))
        self.name = f"RocketMQ proxy {flush}"
        names, grpc_port, self._broker = free_port(), free_port(), free_port()
        homes = {part: directory / part for part in ("names", "proxy")}
        for home in homes.values():
            (home / "conf").mkdir(parents=True)
        (homes["names"] / "names.conf").write_text(f"listenPort={names}\n")
        broker = {
            "brokerClusterName": "peers", "brokerName": "peer", "brokerId": 0, "brokerIP1": "127.0.0.1",
            "listenPort": self._broker, "haListenPort": free_port(), "namesrvAddr": f"127.0.0.1:{names}",
            "storePathRootDir": directory / "store", "storePathCommitLog": directory / "store" / "commitlog",
            "autoCreateTopicEnable": "true", "autoCreateSubscriptionGroup": "true", "flushDiskType": flush,
        }  # fmt: skip
        (homes["proxy"] / "broker.conf").write_text("".join(f"{key}={value}\n" for key, value in broker.items()))
        proxy = {
            "rocketMQClusterName": "peers", "namesrvAddr": f"127.0.0.1:{names}", "grpcServerPort": grpc_port,
            "remotingListenPort": free_port(), "proxyMode": "LOCAL", "enableTopicMessageTypeCheck": False,
        }  # fmt: skip
        (homes["proxy"] / "proxy.json").write_text(json.dumps(proxy))

        def server(part: str, main: str, heap: str, port: int, *arguments: str) -> ServerProcess:
            command = [java, f"-Xms{heap}", f"-Xmx{heap}", *OPENED, f"-Duser.home={homes[part]}", "-cp", jars]
            command += [f"org.apache.rocketmq.{main}", *arguments]
            return ServerProcess(f"rocketmq-{part}", command, homes[part], port, {"ROCKETMQ_HOME": str(homes[part])})

        self._names = server("names", "namesrv.NamesrvStartup", "256m", names, "-c", "names.conf")
        self._proxy = server(
            "proxy", "proxy.ProxyStartup", "1500m", grpc_port, "-bc", "broker.conf", "-pc", "proxy.json", "-pm", "LOCAL"
        )
        self.server = Servers({"names": self._names, "proxy": self._proxy})
        self._data = directory.parent / f"{directory.name}-load"

    def start(self) -> None:
        """Start both. Raises Unavailable."""
        self._names.start()
        self._proxy.start(timeout=120)

    def fill(self, messages: int) -> int:
        """Put at least so many messages of 1 KiB into the topic, over the broker's own port; gives how many came."""
        filled = 0
        shape = LoadShape(1, 8, items=payloads.BATCH, warm=0.1, seconds=_FILL_SECONDS)
        for _ in range(_ROUNDS_OF_FILL):
            if filled >= messages:
                break
            with suppress(Unavailable):  # a broker that has just started, or is short of time, refuses
                sample = rocketmq.send(f"127.0.0.1:{self._broker}", self._data, shape, self._proxy.cpu)
                filled += int(sample["rate"] * _FILL_SECONDS)
        return filled

    def send(self, shape: LoadShape) -> Sample:
        """SendMessage, one message a call."""
        return rocketmq5.send(self._proxy.target, self._data, shape, CpuMeter(self.server.parts))

    def receive(self, shape: LoadShape, group: str) -> Sample:
        """Pop and acknowledge as a group that begins here, by as many consumers as connections."""
        return rocketmq5.receive(self._proxy.target, self._data, shape, group, CpuMeter(self.server.parts))
