"""AnsweringConsumer: a push consumer that answers what operators ask of it."""

import threading
from types import TracebackType
from typing import Any, Self

import grpc

from tandemmq.rocketmq5.v2 import resources_pb2 as pb
from tandemmq.rocketmq5.v2 import telemetry_pb2
from tests.contract.rocketmq5.v2_client import V2Client

STACK = "main: waits\n  at receive"


class AnsweringConsumer:
    """One client in a group. It says where its threads are, and fails on bodies that begin with `bad`."""

    def __init__(self, address: str, group: str, topic: str, **headers: str) -> None:
        self.client = V2Client(address, **headers)
        self.group = group
        self.topic = topic
        self.tried: list[Any] = []
        """Messages that it was asked to consume."""
        self._stream = self.client.stream()
        self._stream.say(self.client.consumer(pb.PUSH_CONSUMER, group, topic))
        self._stream.next("settings")
        self._thread = threading.Thread(target=self._answer, name="answering consumer")
        self._thread.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Ends it."""
        self._stream.call.cancel()
        self._thread.join(30)
        self.client.channel.close()

    def alive(self) -> str:
        """Its id, after a sign of life."""
        self.client.ask("Heartbeat", group=pb.Resource(name=self.group), client_type=pb.PUSH_CONSUMER)
        return self.client.headers["x-mq-client-id"]

    def _answer(self) -> None:
        try:
            for command in self._stream.call:
                self._stream.tell(self._made(command))
        except grpc.RpcError:
            pass  # closed

    def _made(self, command: Any) -> telemetry_pb2.TelemetryCommand | None:
        kind = command.WhichOneof("command")
        if kind == "print_thread_stack_trace_command":
            threads = telemetry_pb2.ThreadStackTrace(nonce=getattr(command, kind).nonce, thread_stack_trace=STACK)
            return telemetry_pb2.TelemetryCommand(status=pb.Status(code=pb.OK), thread_stack_trace=threads)
        if kind == "verify_message_command":
            asked = command.verify_message_command
            self.tried.append(asked.message)
            bad = asked.message.body.startswith(b"bad")
            status = pb.Status(code=pb.FAILED_TO_CONSUME_MESSAGE if bad else pb.OK, message="no good" if bad else "")
            result = telemetry_pb2.VerifyMessageResult(nonce=asked.nonce)
            return telemetry_pb2.TelemetryCommand(status=status, verify_message_result=result)
        return None
