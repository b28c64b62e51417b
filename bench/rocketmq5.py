"""The load of official RocketMQ 5 clients on whoever serves them: a store, gateways, RocketMQ's proxy."""

import queue
from collections.abc import Callable, Iterator
from pathlib import Path

import grpc
from google.protobuf.duration_pb2 import Duration

from bench import payloads
from bench.generators import LoadShape, grpc_load, receive_load, run
from bench.model import Sample, Unavailable
from tandemmq.rocketmq5.v2 import calls_pb2, message_pb2, resources_pb2, settings_pb2, telemetry_pb2

_SERVICE = "/apache.rocketmq.v2.MessagingService"
_HEADERS = (("x-mq-client-id", "bench"), ("x-mq-language", "CPP"), ("x-mq-client-version", "5.0.0"))
_DEADLINE = ("grpc-timeout", "20S")
"""Without one RocketMQ's proxy gives no messages."""
_SENT = ("--byte", "3", "--value", "160")
"""The first byte of the varint 20000 in the answer's status: OK."""


def send(targets: str, directory: Path, shape: LoadShape, cpu: Callable[[], float]) -> Sample:
    """SendMessage of one message of 1 KiB, each with an id of its own. `targets`: addresses, with commas between."""
    with grpc.insecure_channel(targets.partition(",")[0]) as channel:
        _route(channel)
        settings = settings_pb2.Settings(
            client_type=resources_pb2.PRODUCER, publishing=settings_pb2.Publishing(topics=[_topic()])
        )
        with _Telemetry(channel, settings):
            request = calls_pb2.SendMessageRequest(messages=[_message()]).SerializeToString()
            path = payloads.write(directory, "v2-send", request)
            command = [str(grpc_load()), "--target", targets, "--path", f"{_SERVICE}/SendMessage", "--data", str(path)]
            command += ["--counter", str(request.index(payloads.UNIQUE_KEY.encode()) + 16), *_SENT, *_headers()]
            return run([*command, "--streams", str(shape.in_flight)], shape, cpu)


def receive(targets: str, directory: Path, shape: LoadShape, group: str, cpu: Callable[[], float]) -> Sample:
    """ReceiveMessage and AckMessage as a group that begins here, by as many consumers as connections."""
    name, topic = resources_pb2.Resource(name=group), _topic()
    every = resources_pb2.FilterExpression(type=resources_pb2.TAG, expression="*")
    wanted = calls_pb2.ReceiveMessageRequest(
        group=name, message_queue=resources_pb2.MessageQueue(topic=topic, id=-1), filter_expression=every,
        batch_size=shape.items, invisible_duration=Duration(seconds=60), long_polling_timeout=Duration(seconds=1),
    )  # fmt: skip
    begun = calls_pb2.AckMessageRequest(group=name, topic=topic)
    command = [str(receive_load()), "--target", targets, *_headers()]
    for option, method, data in (("receive", "ReceiveMessage", wanted), ("ack", "AckMessage", begun)):
        path = payloads.write(directory, f"v2-{option}-{group}-{shape.items}", data.SerializeToString())
        command += [f"--{option}", str(path), f"--{option}-path", f"{_SERVICE}/{method}"]
    entry = settings_pb2.SubscriptionEntry(topic=topic, expression=every)
    settings = settings_pb2.Settings(
        client_type=resources_pb2.SIMPLE_CONSUMER,
        subscription=settings_pb2.Subscription(
            group=name, subscriptions=[entry], long_polling_timeout=Duration(seconds=1)
        ),
        user_agent=settings_pb2.UA(language=resources_pb2.CPP, version="5.0.0"),
    )
    with grpc.insecure_channel(targets.partition(",")[0]) as channel, _Telemetry(channel, settings):
        return run([*command, "--handle", "2.3.12", "--entry", "3.2"], shape, cpu)


def _topic() -> resources_pb2.Resource:
    return resources_pb2.Resource(name=payloads.TOPIC)


def _message() -> message_pb2.Message:
    system = message_pb2.SystemProperties(
        tag=payloads.TAG, keys=[payloads.KEY], message_id=payloads.UNIQUE_KEY, message_type=resources_pb2.NORMAL,
        body_encoding=message_pb2.IDENTITY, born_host="bench",
    )  # fmt: skip
    return message_pb2.Message(topic=_topic(), body=payloads.body(), system_properties=system)


def _headers() -> list[str]:
    return [f"--header={name}:{value}" for name, value in (*_HEADERS, _DEADLINE)]


def _route(channel: grpc.Channel) -> None:
    """Look the topic up, which makes it where that is how topics are made."""
    call = channel.unary_unary(
        f"{_SERVICE}/QueryRoute",
        request_serializer=calls_pb2.QueryRouteRequest.SerializeToString,
        response_deserializer=calls_pb2.QueryRouteResponse.FromString,
    )
    try:
        call(calls_pb2.QueryRouteRequest(topic=_topic()), metadata=_HEADERS, timeout=20)
    except grpc.RpcError as error:
        raise Unavailable(f"no route to the topic: {error}") from error


class _Telemetry:
    """The stream by which a proxy knows a client and its settings; without it it refuses to serve."""

    def __init__(self, channel: grpc.Channel, settings: settings_pb2.Settings) -> None:
        self._said: queue.Queue[telemetry_pb2.TelemetryCommand | None] = queue.Queue()
        self._said.put(telemetry_pb2.TelemetryCommand(settings=settings))
        call = channel.stream_stream(
            f"{_SERVICE}/Telemetry",
            request_serializer=telemetry_pb2.TelemetryCommand.SerializeToString,
            response_deserializer=telemetry_pb2.TelemetryCommand.FromString,
        )
        self._stream = call(self._requests(), metadata=_HEADERS)

    def __enter__(self) -> None:
        try:
            next(self._stream)
        except (grpc.RpcError, StopIteration) as error:
            raise Unavailable(f"the settings of a RocketMQ 5 client are not taken: {error}") from error

    def __exit__(self, *_: object) -> None:
        self._said.put(None)
        self._stream.cancel()

    def _requests(self) -> Iterator[telemetry_pb2.TelemetryCommand]:
        while (one := self._said.get()) is not None:
            yield one
