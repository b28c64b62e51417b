"""GivenMessages: messages as parts of a ReceiveMessage's answer, in bytes; plain ones by the compiled core.

What that does not take is written as all messages are: `given_message`.
"""

from typing import Protocol

from tandemmq.rocketmq5.v2 import calls_pb2, message_pb2
from tandemmq.rocketmq5.v2 import resources_pb2 as pb
from tandemmq.store.delivery.port import GivenMessage
from tandemmq.store.fronts.rocketmq5.given_message import given_message


class GivenCore(Protocol):
    """The compiled twin: `tandemmq.store.fronts.rocketmq5.compiled.given_message.CompiledGivenMessage`."""

    def part(self, record: bytes, handle: str, number: int, invisible_ms: int, topic: bytes, /) -> bytes | None:
        """A ReceiveMessageResponse with the message of a record. None: it is not taken.

        `number`: of the delivery; `topic`: the field of the message as it is to stand in it.
        """
        ...


class GivenMessages:
    """Writes the messages of answers."""

    def __init__(self, most_body: int, core: GivenCore | None = None) -> None:
        """`most_body`: see `readable_body`."""
        self.most_body = most_body
        self.core = core

    def of(self, topic: pb.Resource, namespace: str = "") -> "EncodedMessages":
        """Those of one topic, as the consumer asked for it. `namespace`: of the call; plain ones need none."""
        return EncodedMessages(self, topic, namespace)


class EncodedMessages:
    """Writes the messages of one answer."""

    __slots__ = ("_core", "_field", "_most_body", "_namespace", "_topic")

    def __init__(self, messages: GivenMessages, topic: pb.Resource, namespace: str) -> None:
        self._core = messages.core
        self._most_body = messages.most_body
        self._namespace = namespace
        self._topic = topic
        self._field = b"" if self._core is None else message_pb2.Message(topic=topic).SerializeToString()

    def at_once(self, given: GivenMessage) -> bytes | None:
        """The part of a plain message; None: `looked_into` has it."""
        if self._core is None:
            return None
        return self._core.part(given.record, given.handle, given.number, given.invisible_ms, self._field)

    async def looked_into(self, given: GivenMessage) -> bytes:
        """The part of any message."""
        message = await given_message(given, self._topic, self._most_body, self._namespace)
        return calls_pb2.ReceiveMessageResponse(message=message).SerializeToString()
