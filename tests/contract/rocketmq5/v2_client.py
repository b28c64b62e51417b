"""V2Client: what an official client does, call by call: any request can be made, and each answer is seen as it is."""

import itertools
import queue
import time
from types import TracebackType
from typing import Any, Self

import grpc
from google.protobuf.duration_pb2 import Duration
from google.protobuf.message import Message

from tandemmq.rocketmq5.v2 import calls_pb2, message_pb2, settings_pb2, telemetry_pb2
from tandemmq.rocketmq5.v2 import resources_pb2 as pb

SERVICE = "apache.rocketmq.v2.MessagingService"
SECONDS = 30.0

_numbers = itertools.count(1)


def duration(seconds: float) -> Duration:
    """So many seconds."""
    return Duration(seconds=int(seconds), nanos=round(seconds % 1 * 1e9))


def new_id() -> str:
    """A message id as the clients make them: 34 hex digits."""
    return f"01AABBCCDDEEFF0001{int(time.time()):08X}{next(_numbers):08X}"


def message(topic: str, body: bytes = b"body", kind: pb.MessageType.ValueType = pb.NORMAL, **system: Any) -> Any:
    """A message as a producer sends it."""
    system.setdefault("message_id", new_id())
    return message_pb2.Message(
        topic=pb.Resource(name=topic),
        body=body,
        system_properties=message_pb2.SystemProperties(
            message_type=kind, body_encoding=message_pb2.IDENTITY, born_host="test", **system
        ),
    )


class Stream:
    """A telemetry stream."""

    def __init__(self, client: "V2Client") -> None:
        self._outgoing: queue.Queue[telemetry_pb2.TelemetryCommand | None] = queue.Queue()
        method = client.channel.stream_stream(
            f"/{SERVICE}/Telemetry",
            telemetry_pb2.TelemetryCommand.SerializeToString,
            telemetry_pb2.TelemetryCommand.FromString,
        )
        self.call: Any = method(iter(self._outgoing.get, None), metadata=client.metadata)

    def say(self, settings: settings_pb2.Settings) -> None:
        """Tells the client's settings."""
        self._outgoing.put(telemetry_pb2.TelemetryCommand(settings=settings))

    def tell(self, command: telemetry_pb2.TelemetryCommand | None) -> None:
        """Says anything else; nothing for None."""
        if command is not None:
            self._outgoing.put(command)

    def next(self, command: str | None = None) -> Any:
        """The next command, or the next of a kind."""
        for one in self.call:
            if command is None or one.WhichOneof("command") == command:
                return one
        raise AssertionError("the stream ended")

    def end(self) -> None:
        """Ends the client's side."""
        self._outgoing.put(None)


class V2Client:
    """One client. Headers may be changed in `headers`."""

    def __init__(self, address: str, **headers: str) -> None:
        options = [("grpc.max_receive_message_length", -1), ("grpc.use_local_subchannel_pool", 1)]
        self.address = address
        self.channel = grpc.insecure_channel(address, options=options)
        host, _, port = address.rpartition(":")
        self.endpoints = pb.Endpoints(scheme=pb.IPv4, addresses=[pb.Address(host=host, port=int(port))])
        self.headers = {"x-mq-client-id": f"test@{next(_numbers)}", "x-mq-language": "PYTHON"}
        self.headers |= {name.replace("_", "-"): value for name, value in headers.items()}

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.channel.close()

    @property
    def metadata(self) -> tuple[tuple[str, str | bytes], ...]:
        """The headers of the next call."""
        return tuple(self.headers.items())

    def ask(self, name: str, request: Message | None = None, seconds: float = SECONDS, **fields: Any) -> Any:
        """One request, one answer."""
        request = request if request is not None else getattr(calls_pb2, f"{name}Request")(**fields)
        answer = getattr(calls_pb2, f"{name}Response")
        method = self.channel.unary_unary(f"/{SERVICE}/{name}", type(request).SerializeToString, answer.FromString)
        return method(request, timeout=seconds, metadata=self.metadata)

    def route(self, topic: str, **fields: Any) -> Any:
        """QueryRoute, with the endpoints that were dialled."""
        fields.setdefault("endpoints", self.endpoints)
        return self.ask("QueryRoute", topic=pb.Resource(name=topic), **fields)

    def send(self, *messages: Any, **fields: Any) -> Any:
        """SendMessage."""
        return self.ask("SendMessage", messages=messages, **fields)

    def begin_receive(self, group: str, topic: str, seconds: float = SECONDS, **fields: Any) -> Any:
        """ReceiveMessage: the call, whose parts are read by iterating."""
        fields.setdefault("batch_size", 32)
        fields.setdefault("message_queue", pb.MessageQueue(topic=pb.Resource(name=topic)))
        request = calls_pb2.ReceiveMessageRequest(group=pb.Resource(name=group), **fields)
        method = self.channel.unary_stream(
            f"/{SERVICE}/ReceiveMessage",
            calls_pb2.ReceiveMessageRequest.SerializeToString,
            calls_pb2.ReceiveMessageResponse.FromString,
        )
        return method(request, timeout=seconds, metadata=self.metadata)

    def parts(self, group: str, topic: str, seconds: float = SECONDS, **fields: Any) -> list[Any]:
        """ReceiveMessage: all parts of the answer."""
        return list(self.begin_receive(group, topic, seconds, **fields))

    def receive(
        self, group: str, topic: str, wait: float = 10, invisible: float | None = 30, **fields: Any
    ) -> list[Any]:
        """The messages of one ReceiveMessage."""
        if invisible is not None:
            fields["invisible_duration"] = duration(invisible)
        parts = self.parts(group, topic, wait + SECONDS, long_polling_timeout=duration(wait), **fields)
        return [part.message for part in parts if part.HasField("message")]

    def take(self, group: str, topic: str, count: int, **fields: Any) -> list[Any]:
        """So many messages, by as many receives as it takes within half a minute."""
        found: list[Any] = []
        deadline = time.monotonic() + SECONDS
        while len(found) < count:
            assert time.monotonic() < deadline, f"{len(found)} of {count} messages came"
            found += self.receive(group, topic, wait=2, **fields)
        return found

    def acknowledge(self, group: str, *messages: Any) -> Any:
        """AckMessage of messages of one topic."""
        entries = [
            calls_pb2.AckMessageEntry(
                message_id=one.system_properties.message_id, receipt_handle=one.system_properties.receipt_handle
            )
            for one in messages
        ]
        return self.ask("AckMessage", group=pb.Resource(name=group), topic=messages[0].topic, entries=entries)

    def change(self, group: str, topic: str, handle: str, seconds: float) -> Any:
        """ChangeInvisibleDuration."""
        return self.ask(
            "ChangeInvisibleDuration",
            group=pb.Resource(name=group),
            topic=pb.Resource(name=topic),
            receipt_handle=handle,
            invisible_duration=duration(seconds),
        )

    def stream(self) -> Stream:
        """A telemetry stream."""
        return Stream(self)

    def producer(self, *topics: str, language: pb.Language.ValueType = pb.PYTHON) -> settings_pb2.Settings:
        """Settings of a producer."""
        return settings_pb2.Settings(
            client_type=pb.PRODUCER,
            access_point=self.endpoints,
            request_timeout=duration(3),
            user_agent=settings_pb2.UA(language=language, version="5.1.2"),
            publishing=settings_pb2.Publishing(topics=[pb.Resource(name=topic) for topic in topics]),
        )

    def consumer(
        self,
        kind: pb.ClientType.ValueType,
        group: str,
        *topics: str,
        language: pb.Language.ValueType = pb.PYTHON,
    ) -> settings_pb2.Settings:
        """Settings of a consumer."""
        subscriptions = [
            settings_pb2.SubscriptionEntry(
                topic=pb.Resource(name=topic), expression=pb.FilterExpression(expression="*")
            )
            for topic in topics
        ]
        return settings_pb2.Settings(
            client_type=kind,
            access_point=self.endpoints,
            request_timeout=duration(3),
            user_agent=settings_pb2.UA(language=language, version="5.1.2"),
            subscription=settings_pb2.Subscription(group=pb.Resource(name=group), subscriptions=subscriptions),
        )
