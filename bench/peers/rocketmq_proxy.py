"""RocketMQ's proxy in local mode: a broker in the same JVM, consumed by pop over gRPC; and its name server."""

import json
import queue
import shutil
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import grpc
from google.protobuf.duration_pb2 import Duration

from bench import payloads
from bench.generators import LoadShape, receive_load, run
from bench.model import Sample, Unavailable
from bench.peers.rocketmq import send
from bench.peers.rocketmq_broker import OPENED, class_path
from bench.process import CpuMeter, ServerProcess, Servers, free_port
from tandemmq.rocketmq5.v2 import calls_pb2, resources_pb2, settings_pb2, telemetry_pb2

VERSION = "5.3.3"
_SERVICE = "/apache.rocketmq.v2.MessagingService"
_HEADERS = (("x-mq-client-id", "bench"), ("x-mq-language", "CPP"), ("x-mq-client-version", "5.0.0"))
_DEADLINE = ("grpc-timeout", "20S")
"""Without one the proxy gives no messages."""
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
                sample = send(f"127.0.0.1:{self._broker}", self._data, shape, self._proxy.cpu)
                filled += int(sample["rate"] * _FILL_SECONDS)
        return filled

    def receive(self, shape: LoadShape, group: str) -> Sample:
        """Pop and acknowledge as a group that begins here, by as many consumers as connections."""
        names = resources_pb2.Resource(name=group), resources_pb2.Resource(name=payloads.TOPIC)
        every = resources_pb2.FilterExpression(type=resources_pb2.TAG, expression="*")
        wanted = calls_pb2.ReceiveMessageRequest(
            group=names[0], message_queue=resources_pb2.MessageQueue(topic=names[1], id=-1), filter_expression=every,
            batch_size=shape.items, invisible_duration=Duration(seconds=60), long_polling_timeout=Duration(seconds=1),
        )  # fmt: skip
        begun = calls_pb2.AckMessageRequest(group=names[0], topic=names[1])
        command = [str(receive_load()), "--target", self._proxy.target]
        command += [f"--header={name}:{value}" for name, value in (*_HEADERS, _DEADLINE)]
        for option, method, data in (("receive", "ReceiveMessage", wanted), ("ack", "AckMessage", begun)):
            path = payloads.write(self._data, f"{option}-{group}-{shape.items}", data.SerializeToString())
            command += [f"--{option}", str(path), f"--{option}-path", f"{_SERVICE}/{method}"]
        with grpc.insecure_channel(self._proxy.target) as channel:
            telemetry = _Telemetry(channel, group)
            try:
                meter = CpuMeter(self.server.parts)
                return run([*command, "--handle", "2.3.12", "--entry", "3.2"], shape, meter)
            finally:
                telemetry.end()


class _Telemetry:
    """The stream by which a proxy knows a consumer and its settings; without it it refuses to give messages."""

    def __init__(self, channel: grpc.Channel, group: str) -> None:
        self._said: queue.Queue[telemetry_pb2.TelemetryCommand | None] = queue.Queue()
        topic = resources_pb2.Resource(name=payloads.TOPIC)
        entry = settings_pb2.SubscriptionEntry(
            topic=topic, expression=resources_pb2.FilterExpression(type=resources_pb2.TAG, expression="*")
        )
        settings = settings_pb2.Settings(
            client_type=resources_pb2.SIMPLE_CONSUMER,
            subscription=settings_pb2.Subscription(
                group=resources_pb2.Resource(name=group), subscriptions=[entry],
                long_polling_timeout=Duration(seconds=1),
            ),
            user_agent=settings_pb2.UA(language=resources_pb2.CPP, version="5.0.0"),
        )  # fmt: skip
        self._said.put(telemetry_pb2.TelemetryCommand(settings=settings))
        call = channel.stream_stream(
            f"{_SERVICE}/Telemetry",
            request_serializer=telemetry_pb2.TelemetryCommand.SerializeToString,
            response_deserializer=telemetry_pb2.TelemetryCommand.FromString,
        )
        self._stream = call(self._requests(), metadata=_HEADERS)
        try:
            next(self._stream)
        except (grpc.RpcError, StopIteration) as error:
            raise Unavailable(f"RocketMQ's proxy takes no settings: {error}") from error

    def _requests(self) -> Iterator[telemetry_pb2.TelemetryCommand]:
        while (one := self._said.get()) is not None:
            yield one

    def end(self) -> None:
        """The consumer is gone."""
        self._said.put(None)
        self._stream.cancel()
