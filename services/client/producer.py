"""Producer: sends messages, now, later, in order, or as a transaction; for programs without asyncio."""

from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future, wait
from contextlib import contextmanager
from datetime import datetime
from types import TracebackType
from typing import Self, Unpack

from tandemmq.client import aio_producer
from tandemmq.client.aio_producer import KEEP_TRYING, Check
from tandemmq.client.background import BACKGROUND
from tandemmq.client.cluster import Access
from tandemmq.client.encode import Outgoing
from tandemmq.client.observing import Observers
from tandemmq.client.outgoing import Extras, Seconds, Sent


class Producer:
    """Sends to one broker; the calls of `tandemmq.client.aio.Producer`, which says what they mean and raise.

    Threads may share one.
    """

    def __init__(
        self,
        addresses: str | Sequence[str],
        *,
        group: str = "",
        check: Check | None = None,
        keep_trying: float = KEEP_TRYING,
        linger: Seconds = 0.0,
        observers: Observers = (),
        **access: Unpack[Access],
    ) -> None:
        """The same arguments as those of `aio.Producer`; for `linger` see `send_soon`."""
        self._inner = aio_producer.Producer(
            addresses, group=group, check=check, keep_trying=keep_trying, linger=linger, observers=observers, **access
        )
        self._soon: set[Future[Sent]] = set()

    def __enter__(self) -> Self:
        BACKGROUND.run(self._inner.__aenter__())
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Wait for what is being sent, which lingers no more, and end the connections."""
        BACKGROUND.loop.call_soon_threadsafe(self._inner.hurry)
        wait(tuple(self._soon))
        BACKGROUND.run(self._inner.close())

    def send(self, topic: str, body: bytes | str, *, any_status: bool = False, **extras: Unpack[Extras]) -> Sent:
        """Store a message; as safe as the store is set up to make it when this returns."""
        return BACKGROUND.run(self._inner.send(topic, body, any_status=any_status, **extras))

    def send_soon(
        self, topic: str, body: bytes | str, *, any_status: bool = False, **extras: Unpack[Extras]
    ) -> "Future[Sent]":
        """Begin to store a message, and do not wait: `result()` of what this gives is, or raises, what `send` does.

        With `linger` those that are sent within that time go in one request. Look at every result: nobody else does.
        """
        soon = BACKGROUND.begin(self._inner.send(topic, body, any_status=any_status, **extras))
        self._soon.add(soon)
        soon.add_done_callback(self._soon.discard)
        return soon

    def send_after(
        self, topic: str, body: bytes | str, delay: Seconds, *, any_status: bool = False, **extras: Unpack[Extras]
    ) -> Sent:
        """Store a message that consumers get after `delay`, in seconds or as a timedelta."""
        return BACKGROUND.run(self._inner.send_after(topic, body, delay, any_status=any_status, **extras))

    def send_at(
        self,
        topic: str,
        body: bytes | str,
        when: datetime | float,
        *,
        any_status: bool = False,
        **extras: Unpack[Extras],
    ) -> Sent:
        """Store a message that consumers get at `when`: a datetime with a time zone, or seconds since 1970."""
        return BACKGROUND.run(self._inner.send_at(topic, body, when, any_status=any_status, **extras))

    def send_batch(self, messages: Iterable[Outgoing], *, any_status: bool = False) -> list[Sent]:
        """Store messages of any topics with one wait for the disk; all are refused or none."""
        return BACKGROUND.run(self._inner.send_batch(messages, any_status=any_status))

    def recall(self, message: Sent) -> None:
        """Take back a message that waits for its time."""
        BACKGROUND.run(self._inner.recall(message))

    @contextmanager
    def transaction(self) -> "Iterator[Transaction]":
        """Messages that consumers get when the block ends well, and never when it raises."""
        block = self._inner.transaction()
        transaction = Transaction(BACKGROUND.run(block.__aenter__()))
        try:
            yield transaction
        except BaseException as error:
            if not BACKGROUND.run(block.__aexit__(type(error), error, error.__traceback__)):
                raise
        else:
            BACKGROUND.run(block.__aexit__(None, None, None))


class Transaction:
    """The messages of one `Producer.transaction` block."""

    def __init__(self, inner: aio_producer.Transaction) -> None:
        self._inner = inner

    @property
    def messages(self) -> list[Sent]:
        """What was sent in it."""
        return self._inner.messages

    def send(self, topic: str, body: bytes | str, **extras: Unpack[Extras]) -> Sent:
        """Store a message that waits for the end of the block."""
        return BACKGROUND.run(self._inner.send(topic, body, **extras))
