"""Sends of single messages through the compiled core, for the campaigns; what it does not take goes the Python way."""

from types import SimpleNamespace
from typing import Any, cast

from tandemmq.store.broker.broker import Broker
from tandemmq.store.broker.send import Sender, SendRules
from tandemmq.store.broker.topics import TopicConfig
from tandemmq.store.compiled_core import check_core, compiled_core
from tandemmq.store.format.message_id import UniqueIdGenerator
from tandemmq.store.log.event import Event
from tandemmq.store.log.message_store import MessageStore
from tandemmq.store.log.segments.commit_log import Appended
from tandemmq.store.v1 import message_pb2, store_pb2
from tests.core_choice import core_choice
from tests.faults.checker import Queue
from tests.faults.harness import HOST, body_of, message, named_properties_of


class EveryTopic:
    """A table that has each topic."""

    changed = Event()

    def get(self, name: str) -> TopicConfig:
        return TopicConfig(name, 8, 8)


class CompiledSends:
    """Over one open store. `taken` is how many the core took; where it is not built, none."""

    def __init__(self, store: MessageStore) -> None:
        new_id = UniqueIdGenerator(b"\x7f\0\0\1", 1, 1).next
        topics, rules = cast(Any, EveryTopic()), SendRules(HOST)
        sender = Sender(store, topics, cast(Any, None), rules, store.clock, new_id)  # nothing of it waits
        parts = SimpleNamespace(store=store, sender=sender, topics=topics, traffic=SimpleNamespace(sent=self._count))
        check_core(core_choice())
        core = compiled_core(cast(Broker, parts), store.timers.call_soon, core_choice(), "cluster")
        self._store = store
        self._send = core.send
        self.taken = 0

    def _count(self, topic: str, messages: int, size: int) -> None:
        self.taken += messages

    def append(self, queue: Queue, value: str) -> Appended:
        """Store a message. Raises as `MessageStore.append`."""
        one = message_pb2.Message(
            topic=queue[0],
            queue_id=queue[1],
            body=body_of(value),
            properties=named_properties_of(value),
            born_timestamp=1_750_000_000_000,
        )
        answer = None
        if self._send is not None:
            answer = self._send.answer(store_pb2.SendRequest(message=one).SerializeToString(), HOST.packed)
        if answer is None or self._send is None:
            return self._store.append(message(queue, value))
        place, end = store_pb2.SendResponse.FromString(answer).receipt, self._send.end_offset
        size = end - place.physical_offset
        return Appended(place.physical_offset, size, place.queue_offset, place.store_timestamp, end)
