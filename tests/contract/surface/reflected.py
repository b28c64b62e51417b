"""A gRPC port as a stranger sees it: services, methods and messages come of its reflection, nothing of our own code."""

import threading
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple, cast

import grpc
from google.protobuf import json_format
from google.protobuf.descriptor import Descriptor, MethodDescriptor
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass
from grpc_reflection.v1alpha.proto_reflection_descriptor_database import ProtoReflectionDescriptorDatabase

ANSWER_SECONDS = 60.0
"""A call without a wait in it is answered long before that, on a busy machine too."""

LARGEST = 64 << 20


class Outcome(NamedTuple):
    """How a call ended."""

    code: str
    """gRPC's name of it; `OK` also for a call that was cancelled here because its answers were seen."""
    details: str
    answers: list[Message]

    @property
    def accepted(self) -> bool:
        """Not refused: it was answered, or waited for what it was asked to wait for."""
        return self.code in ("OK", "DEADLINE_EXCEEDED")


class Port:
    """One address. Close it."""

    def __init__(self, address: str) -> None:
        options = [("grpc.max_receive_message_length", LARGEST), ("grpc.use_local_subchannel_pool", 1)]
        self.address = address
        self.channel = grpc.insecure_channel(address, options=options)
        database = ProtoReflectionDescriptorDatabase(self.channel)
        pool = DescriptorPool(database)
        self.services = sorted(database.get_services())
        self.methods: dict[str, MethodDescriptor] = {
            f"/{service}/{method.name}": method
            for service in self.services
            for method in pool.FindServiceByName(service).methods
        }
        """By path, as gRPC calls it."""

    def close(self) -> None:
        """Ends the connection."""
        self.channel.close()

    def request_type(self, path: str) -> Descriptor:
        """What a method takes."""
        return self.methods[path].input_type

    def message(self, path: str, fields: dict[str, Any]) -> Message:
        """A request of a method, from JSON as protobuf has it. Raises json_format.ParseError."""
        return json_format.ParseDict(fields, GetMessageClass(self.request_type(path))())

    def call(
        self,
        path: str,
        requests: Sequence[Message | bytes],
        *,
        most: int = 1,
        seconds: float = ANSWER_SECONDS,
        hold: bool = False,
    ) -> Outcome:
        """Makes a call of any kind, as bytes: on the wire they are all alike.

        `most`: cancels it when so many answers are there, if the method streams them and its requests are not seen to
        their end. `hold`: requests do not end before that. Answers that are none of the described type fail the test.
        """
        method = self.methods[path]
        cut = method.server_streaming and (hold or not method.client_streaming)
        answer_type = GetMessageClass(method.output_type)
        enough = threading.Event()
        outgoing = [one if isinstance(one, bytes) else one.SerializeToString() for one in requests]

        def sent() -> Iterator[bytes]:
            yield from outgoing
            if hold and method.client_streaming:
                enough.wait(seconds)

        call = self.begin(path, sent(), seconds)
        answers: list[Message] = []
        try:
            for raw in call:
                answers.append(answer_type.FromString(raw))
                if cut and len(answers) >= most:
                    break
            else:
                return Outcome("OK", "", answers)
            return Outcome("OK", "enough", answers)
        except grpc.RpcError as error:
            failed = cast(Any, error)
            return Outcome(failed.code().name, failed.details() or "", answers)
        finally:
            enough.set()
            call.cancel()

    def begin(self, path: str, requests: Iterator[bytes], seconds: float = ANSWER_SECONDS) -> Any:
        """The call itself, whose answers are read by iterating."""
        method: Any = self.channel.stream_stream(path)
        return method(requests, timeout=seconds)

    def ask(self, path: str, **fields: Any) -> Any:
        """The one answer to a request that must be answered."""
        outcome = self.call(path, [self.message(path, fields)], most=1_000)
        assert outcome.code == "OK", f"{path}: {outcome}"
        return outcome.answers[0]

    def serving(self) -> bool:
        """Whether its health says SERVING, of the server and of each of our services."""
        ours = [service for service in self.services if service.startswith("tandemmq.")]
        return all(self.ask("/grpc.health.v1.Health/Check", service=name).status == 1 for name in ("", *ours))
