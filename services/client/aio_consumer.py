"""Consumer: messages for a group, each to be settled; for asyncio."""

import asyncio
import logging
import secrets
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import suppress
from types import TracebackType
from typing import Any, Self, Unpack

from tandemmq.client.attending import HEARTBEAT_SECONDS, heartbeat_of, new_client_id
from tandemmq.client.cluster import PAUSES, Access, Cluster
from tandemmq.client.errors import ClientError, ClientFault, DamagedMessage
from tandemmq.client.holding import Held, Holding
from tandemmq.client.message import MessageContent
from tandemmq.client.observing import Observers, tell
from tandemmq.client.outgoing import Seconds, seconds_of
from tandemmq.client.records import one_record
from tandemmq.common.calling.backoff import Backoff
from tandemmq.common.timers import time_limit
from tandemmq.delivery.v1 import delivery_pb2

log = logging.getLogger("tandemmq.client")

WAIT_SECONDS = 20.0
"""How long one request waits at the broker for messages."""

INVISIBLE_SECONDS = 30.0
"""How long messages stay ours without a word of us: what a killed process held comes again after that."""

PREFETCH = 32

_NO_TOPIC = "NO_MATCHED_LOGIC_QUEUE"
"""There is no such topic yet: consumers may be started before the first message is sent."""


class Message(MessageContent):
    """A message that we hold. Settle it once; until then it is kept from others."""

    __slots__ = ("_held", "_holding", "_shelf")

    def __init__(self, content: MessageContent, held: Held, holding: Holding, shelf: "deque[Message]") -> None:
        """`shelf`: what was fetched ahead with it."""
        super().__init__(content.topic, content.record, content.delivery_number)
        object.__setattr__(self, "_held", held)
        object.__setattr__(self, "_holding", holding)
        object.__setattr__(self, "_shelf", shelf)

    _held: Held
    _holding: Holding
    _shelf: "deque[Message]"

    def tried(self) -> "Message":
        """The same message, still held, with the next number: for programs that try again themselves."""
        content = MessageContent(self.topic, self.record, self.delivery_number + 1)
        return Message(content, self._held, self._holding, self._shelf)

    async def ack(self) -> None:
        """It is dealt with, and that is durable. Raises NoLongerHeld if it came to somebody else meanwhile."""
        await self._holding.acknowledge(self._held)

    async def retry(self, after: Seconds = 0.0) -> None:
        """It comes again after so many seconds, or a timedelta: to us or to another member of the group.

        What was fetched ahead of the same order key is given back, so that it does not overtake this one.
        """
        await self._holding.postpone(self._held, seconds_of(after))
        behind = [one for one in self._shelf if one.order_key == self.order_key] if self.order_key else []
        if behind:
            for one in behind:
                self._shelf.remove(one)
            await self._holding.give_back(one._held for one in behind)

    async def give_back(self) -> None:
        """Nobody has looked at it: it comes again at once, to whichever member, and this delivery does not count."""
        await self._holding.give_back([self._held])

    def let_go(self) -> None:
        """Renew it no more: it comes again when its time is over, to whichever member, unless it is settled before."""
        self._holding.let_go(self._held)

    async def dead_letter(self) -> None:
        """It goes to the group's dead letters, and comes no more."""
        await self._holding.forward(self._held)


class Consumer:
    """Receives for one group from one topic.

    Use it as `async with`, and iterate::

        async with Consumer("127.0.0.1:8081", group="billing", topic="orders") as consumer:
            async for message in consumer:
                await handle(message)
                await message.ack()

    Messages are fetched ahead, and renewed for as long as they are held. At the end those that were not looked at are
    given back; what was handed out and not settled comes again after `invisible` seconds. When the store is away the
    consumer waits for it; iterating raises RequestFailed for what no retry can mend (GroupRefused, FilterRefused), and
    ClientFault when something failed in the background that nobody foresaw.
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
        """`addresses`: `host:port` of the store; of each of a pair.

        `filter`: tags, as in `A || B`; or `sql`: a condition over properties, as in `price > 10`. `prefetch`: most
        messages that wait here; 0: one is fetched when it is asked for. `invisible`: 10 seconds and more. `observers`:
        who is told of each message. `access`: as for StoreClient.
        """
        if sql and filter != "*":
            raise ValueError("give either filter (tags) or sql")
        if prefetch < 0:
            raise ValueError("prefetch must be 0 or more")
        self.group, self.topic = group, topic
        self.retry_max_times: int | None = None
        """How often a message of the group comes again before it is a dead letter; -1: always; None: not known yet."""
        self.retry_waits: Sequence[float] = ()
        """Seconds until its 2nd, 3rd, ... delivery, by the group's own policy; empty: it has none, or is not known."""
        self._filter = delivery_pb2.Filter(
            kind=delivery_pb2.SQL92 if sql else delivery_pb2.TAG, expression=sql or filter
        )
        self._prefetch = prefetch
        self._invisible = seconds_of(invisible)
        self._cluster = Cluster(addresses, **access)
        self.observers = tuple(observers)
        self._holding = Holding(self._cluster, group, topic, self._invisible, self._settled)
        self._client_id = new_client_id()
        self._ready: deque[Message] = deque()
        self._news = asyncio.Condition()
        self._asking = 0
        self._greeted = asyncio.Event()  # set when the first heartbeat was answered, or was not
        self._failed: ClientError | None = None
        self._stopped = False
        self._tasks: list[asyncio.Task[Any]] = []

    async def __aenter__(self) -> Self:
        self._start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    def _start(self) -> None:
        if not self._tasks:
            self._tasks = [
                asyncio.create_task(self._watched(self._fetch), name="fetch messages"),
                asyncio.create_task(self._watched(self._holding.keep), name="renew messages"),
                asyncio.create_task(self._watched(self._beat), name="heartbeat"),
            ]

    # -- messages ---------------------------------------------------------------------------------------------------

    async def __aiter__(self) -> AsyncIterator[Message]:
        while (message := await self.receive()) is not None:
            yield message

    async def receive(self, timeout: float | None = None) -> Message | None:
        """The next message; None after `timeout` seconds without one, or after `stop`.

        Raises RequestFailed, ClientFault.
        """
        self._start()
        self._asking += 1
        await self._tell()
        try:
            async with time_limit(self._cluster.timers, timeout), self._news:
                await self._news.wait_for(lambda: self._ready or self._stopped or self._failed is not None)
        except TimeoutError:
            return None
        finally:
            self._asking -= 1
        if self._stopped:
            return None
        if self._ready:
            message = self._ready.popleft()
            await self._tell()
            return message
        if self._failed is not None:
            raise self._failed
        return None

    async def stop(self) -> None:
        """Fetch no more: iterating ends, and what nobody has looked at is given back. What is held stays held."""
        if self._stopped:
            return
        self._stopped = True
        if self._tasks:
            await _ended(self._tasks[0])
        back = [message._held for message in self._ready]
        self._ready.clear()
        await self._tell()
        if back:
            await self._holding.give_back(back)

    async def close(self) -> None:
        """Stop, leave the group and end the connections."""
        await self.stop()
        for task in self._tasks:
            await _ended(task)
        with suppress(ClientError):
            await self._cluster.call(
                lambda stubs: stubs.delivery.Leave,
                delivery_pb2.LeaveRequest(client_id=self._client_id, groups=[self.group]),
                delivery_pb2.LeaveResponse,
                keep_trying=0.0,
            )
        await self._cluster.close()

    async def _tell(self) -> None:
        async with self._news:
            self._news.notify_all()

    # -- in the background ------------------------------------------------------------------------------------------

    async def _watched(self, work: Callable[[], Awaitable[None]]) -> None:
        """Background work. What it did not foresee is raised to whoever asks for a message: no more are fetched."""
        try:
            await work()
        except Exception as error:
            log.exception("the consumer of group %s has failed", self.group)
            self._failed = ClientFault(f"The consumer of group {self.group}", error)
            if asyncio.current_task() is not self._tasks[0]:
                self._tasks[0].cancel()
            await self._tell()

    async def _fetch(self) -> None:
        """Keep the shelf full, until something fails for good."""
        backoff, attempt_id = Backoff(*PAUSES), secrets.token_hex(8)
        await self._greeted.wait()
        while True:
            async with self._news:
                await self._news.wait_for(self._has_room)
            try:
                await self._fetch_some(attempt_id)
            except ClientError as error:
                if not error.retriable and error.status != _NO_TOPIC:
                    self._failed = error
                    await self._tell()
                    return
                log.log(logging.WARNING if backoff.fresh else logging.DEBUG, "no messages at present: %s", error)
                await self._cluster.timers.sleep(backoff.pause())
            else:
                backoff.reset()
                attempt_id = secrets.token_hex(8)

    def _has_room(self) -> bool:
        if self._prefetch:
            return len(self._ready) <= self._prefetch // 2
        return self._asking > 0 and not self._ready

    async def _fetch_some(self, attempt_id: str) -> None:
        """One request: the same `attempt_id` again gets what a lost answer had."""
        request = delivery_pb2.ReceiveRequest(
            group=self.group,
            topic=self.topic,
            filter=self._filter,
            max_messages=max(1, self._prefetch - len(self._ready)),
            invisible_ms=round(self._invisible * 1000),
            wait_ms=round(WAIT_SECONDS * 1000),
            client_id=self._client_id,
            attempt_id=attempt_id,
        )
        answer = await self._cluster.call(
            lambda stubs: stubs.delivery.Receive,
            request,
            delivery_pb2.ReceiveResponse,
            keep_trying=WAIT_SECONDS,
            wait=WAIT_SECONDS,
        )
        for one in answer.messages:
            try:
                content = MessageContent(one.topic, one_record(one.record), one.delivery_number)
            except DamagedMessage as error:  # on the way: the store has looked at it
                log.warning("a message of %s comes again in %.0f s: %s", one.topic, one.invisible_ms / 1000, error)
                continue
            held = self._holding.take(one.handle, one.invisible_ms)
            self._ready.append(Message(content, held, self._holding, self._ready))
        if answer.messages:
            tell(self.observers, lambda one: one.received(self.group, self.topic, len(answer.messages)))
            await self._tell()

    def _settled(self, ending: str) -> None:
        tell(self.observers, lambda one: one.settled(self.group, self.topic, ending))

    async def _beat(self) -> None:
        """Say that we are there, so that the group's members can be seen."""
        membership = delivery_pb2.Membership(group=self.group, subscriptions={self.topic: self._filter})
        heartbeat = heartbeat_of(self._client_id, [membership])
        while True:
            try:
                answer = await self._cluster.call(
                    lambda stubs: stubs.delivery.Heartbeat,
                    heartbeat,
                    delivery_pb2.HeartbeatResponse,
                    keep_trying=HEARTBEAT_SECONDS,
                )
                self.retry_max_times = answer.retry_max_times.get(self.group)
                self.retry_waits = [one / 1_000 for one in answer.retry_waits[self.group].ms]
            except ClientError as error:
                log.debug("heartbeat: %s", error)
            self._greeted.set()
            await self._cluster.timers.sleep(HEARTBEAT_SECONDS)


async def _ended(task: "asyncio.Task[Any]") -> None:
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
