"""Consumer: messages for a group, each to be settled; for programs without asyncio."""

from collections.abc import Iterator, Sequence
from types import TracebackType
from typing import Self, Unpack

from tandemmq.client import aio_consumer
from tandemmq.client.aio_consumer import INVISIBLE_SECONDS, PREFETCH
from tandemmq.client.background import BACKGROUND
from tandemmq.client.cluster import Access
from tandemmq.client.message import MessageContent
from tandemmq.client.observing import Observers
from tandemmq.client.outgoing import Seconds


class Message(MessageContent):
    """A message that we hold. Settle it once; until then it is kept from others."""

    __slots__ = ("_inner",)

    _inner: aio_consumer.Message

    def __init__(self, inner: aio_consumer.Message) -> None:
        super().__init__(inner.topic, inner.record, inner.delivery_number)
        object.__setattr__(self, "_inner", inner)

    def ack(self) -> None:
        """It is dealt with, and that is durable. Raises NoLongerHeld if it came to somebody else meanwhile."""
        BACKGROUND.run(self._inner.ack())

    def retry(self, after: Seconds = 0.0) -> None:
        """It comes again after so many seconds, or a timedelta: to us or to another member of the group.

        What was fetched ahead of the same order key is given back, so that it does not overtake this one.
        """
        BACKGROUND.run(self._inner.retry(after))

    def give_back(self) -> None:
        """Nobody has looked at it: it comes again at once, to whichever member, and this delivery does not count."""
        BACKGROUND.run(self._inner.give_back())

    def dead_letter(self) -> None:
        """It goes to the group's dead letters, and comes no more."""
        BACKGROUND.run(self._inner.dead_letter())


class Consumer:
    """Receives for one group from one topic; `tandemmq.client.aio.Consumer` says what calls mean and raise.

    Use it as `with`, and iterate::

        with Consumer("127.0.0.1:8081", group="billing", topic="orders") as consumer:
            for message in consumer:
                handle(message)
                message.ack()
    """

    def __init__(
        self,
        addresses: str | Sequence[str],
        *,
        group: str,
        topic: str,
        filter: str = "*",
        sql: str = "",
        prefetch: int = PREFETCH,
        invisible: Seconds = INVISIBLE_SECONDS,
        observers: Observers = (),
        **access: Unpack[Access],
    ) -> None:
        """The same arguments as those of `aio.Consumer`."""
        self._inner = aio_consumer.Consumer(
            addresses,
            group=group,
            topic=topic,
            filter=filter,
            sql=sql,
            prefetch=prefetch,
            invisible=invisible,
            observers=observers,
            **access,
        )

    def __enter__(self) -> Self:
        BACKGROUND.run(self._inner.__aenter__())
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __iter__(self) -> Iterator[Message]:
        while (message := self.receive()) is not None:
            yield message

    def receive(self, timeout: float | None = None) -> Message | None:
        """The next message; None after `timeout` seconds without one, or after `stop`.

        Raises RequestFailed, ClientFault.
        """
        message = BACKGROUND.run(self._inner.receive(timeout))
        return None if message is None else Message(message)

    def stop(self) -> None:
        """Fetch no more: iterating ends, also in another thread, and what nobody has looked at is given back."""
        BACKGROUND.run(self._inner.stop())

    def close(self) -> None:
        """Stop, leave the group and end the connections."""
        BACKGROUND.run(self._inner.close())
