"""Recalls: taking back a message that waits for its time.

A recall is a message too, as RocketMQ writes it: to the same topic, due at the same time, with TIMER_DEL_UNIQKEY naming
the message that is not to be delivered. Whoever delivers timers finds both together.

The handle is RocketMQ's: base64 of ``v1 <topic> <broker> <due, ms> <UNIQ_KEY>``. Which broker it names does not
count: a slave that has taken over is as good.
"""

import base64
import binascii
from typing import NamedTuple

from tandemmq.store.broker.broker import Broker
from tandemmq.store.broker.errors import UnknownTopic
from tandemmq.store.broker.group_transfer import PutStatus
from tandemmq.store.broker.postponing import TIMER_TOPIC
from tandemmq.store.broker.send import NewMessage, Ready
from tandemmq.store.delivery.errors import BadHandle, HandleExpired, NotSafe
from tandemmq.store.format import properties as names
from tandemmq.store.format.host import Host
from tandemmq.store.log.edges.clock import Clock

DELETE_KEY = "TIMER_DEL_UNIQKEY"
_VERSION = "v1"
_PARTS = 5
_LONGEST = 1_024


class RecallHandle(NamedTuple):
    """Names a message that waits for its time."""

    topic: str
    broker: str
    due: int
    """ms since 1970."""
    unique_key: str

    def __str__(self) -> str:
        """The text, URL-safe."""
        text = f"{_VERSION} {self.topic} {self.broker} {self.due} {self.unique_key}"
        return base64.urlsafe_b64encode(text.encode()).decode()

    @classmethod
    def parse(cls, text: str) -> "RecallHandle":
        """Read a handle. Raises BadHandle."""
        try:
            if len(text) > _LONGEST:
                raise ValueError(text)
            parts = base64.urlsafe_b64decode(text).decode().split(" ", _PARTS - 1)
            version, topic, broker, due, key = parts
            if version != _VERSION or not topic or not key or not due.isascii() or not due.isdigit():
                raise ValueError(text)
            return cls(topic, broker, int(due), key)
        except (binascii.Error, ValueError):
            raise BadHandle(
                "The recall handle cannot be read.", remedy="It is that of the message's receipt."
            ) from None


def recall_handle(ready: Ready, broker: str = "") -> str:
    """The handle of a message that was stored; empty where it cannot be recalled.

    `broker` is the name by which classic clients look for the broker to ask; else it is the address.
    """
    postponed, message = ready.postponed, ready.message
    if postponed is None or postponed.topic != TIMER_TOPIC:
        return ""
    topic = names.decode(message.properties).get(names.REAL_TOPIC, "")
    return str(RecallHandle(topic, broker or str(message.store_host), postponed.due, ready.unique_key))


class MessageRecalls:
    """Takes messages back that wait for their time."""

    def __init__(self, broker: Broker, clock: Clock) -> None:
        self._broker = broker
        self._clock = clock

    async def recall(self, topic: str, handle: str, born_host: Host) -> str:
        """See `port.DeliveryPort`. Raises HandleExpired where its time has come, and NotSafe."""
        named = RecallHandle.parse(handle)
        if named.topic != topic:
            raise BadHandle(f"The recall handle is one of topic {named.topic}.")
        if self._broker.topics.get(topic) is None:
            raise UnknownTopic(f"Topic {topic} does not exist.")
        if named.due <= self._clock.now_ms():
            raise HandleExpired("The message's time has come: it cannot be recalled any more.")
        recall = NewMessage(
            topic,
            born_host,
            b"0",  # RocketMQ's
            {names.TIMER_DELIVER_MS: str(named.due), DELETE_KEY: f"{topic}+{named.unique_key}"},
        )
        status = (await self._broker.send(recall)).status
        if status is not PutStatus.PUT_OK:
            raise NotSafe(f"The message is taken back, but that is not known to be safe: {status.name}.")
        if named.due <= self._clock.now_ms():  # what is not confirmed does not count when the time comes
            raise HandleExpired("The message's time came before its recall was safe: it may have been delivered.")
        return named.unique_key
