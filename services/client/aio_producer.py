"""Producer: sends messages, now, later, in order, or as a transaction; for asyncio."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, asynccontextmanager, contextmanager
from dataclasses import replace
from datetime import datetime
from enum import Enum
from inspect import isawaitable
from types import TracebackType
from typing import Self, Unpack, cast

from tandemmq.client.attending import Attending
from tandemmq.client.cluster import Access, Cluster
from tandemmq.client.encode import Outgoing
from tandemmq.client.errors import Refused
from tandemmq.client.lingering import Lingering
from tandemmq.client.observing import Observers, tell
from tandemmq.client.outgoing import (
    Extras,
    Seconds,
    Sent,
    check_ok,
    milliseconds_at,
    new_id,
    outgoing,
    seconds_of,
    sent,
)
from tandemmq.client.records import one_record
from tandemmq.client.results import batch_request, send_request
from tandemmq.client.statuses import SendStatus
from tandemmq.delivery.v1 import delivery_pb2
from tandemmq.store.format import properties as names
from tandemmq.store.format.record import Record
from tandemmq.store.v1 import store_pb2

KEEP_TRYING = 30.0
"""Seconds for which a send is tried again, unless the producer is told otherwise."""


class TransactionState(Enum):
    """How a transaction has ended, as the answer to the broker's question."""

    COMMIT = delivery_pb2.COMMIT
    ROLLBACK = delivery_pb2.ROLLBACK
    UNKNOWN = delivery_pb2.UNKNOWN
    """Not known yet: ask again later."""


Check = Callable[[Record], TransactionState | Awaitable[TransactionState]]
"""Looks up how the transaction of a half message has ended. A plain function runs in a thread."""


class Producer:
    """Sends to one broker. Use it as `async with Producer(...) as producer:`.

    Every send is tried again, at each address in turn, until it is stored or `keep_trying` seconds are over; its
    UNIQ_KEY stays the same, by which the broker knows a message that it has already (setting repeatedSendWindow).
    Raises Refused if the store refuses; StoreUnreachable, NotMaster, Recovering, NotTaken if no store could take it in
    time; NotReplicated, NotDurable if it is stored and less safe than it should be, unless `any_status` is True: then
    the receipt says so.
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
        """`addresses`: `host:port` of the store; of each of a pair. `observers`: who is told of each message.

        `linger`: `send` waits so long for others that are sent at the same time, and all go in one request; not those
        with an order key, which go one after the other.

        `group`: for transactions, the name that all instances of this program share. `check`: asked about
        transactions whose end the broker does not know, of any instance. `access`: as for StoreClient.
        """
        self._cluster = Cluster(addresses, **access)
        self._group = group
        self._check = check
        self._keep_trying = keep_trying
        self._order: dict[str, _Turn] = {}
        self._ends: dict[str, TransactionState] = {}
        self._attending: Attending | None = None
        self._observers = tuple(observers)
        lingers = seconds_of(linger)
        self._lingering = Lingering(lingers, self._store_all, self._store, self._cluster.timers) if lingers else None

    async def __aenter__(self) -> Self:
        if self._check is not None:
            self._attend()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Send what lingers, and end the connections."""
        if self._lingering is not None:
            await self._lingering.close()
        if self._attending is not None:
            await self._attending.close()
        await self._cluster.close()

    def hurry(self) -> None:
        """What lingers, and what is sent from now on, leaves at once."""
        if self._lingering is not None:
            self._lingering.hurry()

    # -- sending ----------------------------------------------------------------------------------------------------

    async def send(self, topic: str, body: bytes | str, *, any_status: bool = False, **extras: Unpack[Extras]) -> Sent:
        """Store a message; as safe as the store is set up to make it when this returns."""
        message, order_key = outgoing(topic, body, extras), extras.get("order_key", "")
        with self._told(message) as told:
            if self._lingering is not None and not order_key:
                return told(_checked(await self._lingering.send(message), any_status))
            return told(_checked(await self._send(message, order_key), any_status))

    async def send_after(
        self, topic: str, body: bytes | str, delay: Seconds, *, any_status: bool = False, **extras: Unpack[Extras]
    ) -> Sent:
        """Store a message that consumers get after `delay`, in seconds or as a timedelta; by the broker's clock."""
        wait = str(round(seconds_of(delay) * 1000))
        message = outgoing(topic, body, extras, **{names.TIMER_DELAY_MS: wait})
        with self._told(message) as told:
            return told(_checked(await self._send(message), any_status))

    async def send_at(
        self,
        topic: str,
        body: bytes | str,
        when: datetime | float,
        *,
        any_status: bool = False,
        **extras: Unpack[Extras],
    ) -> Sent:
        """Store a message that consumers get at `when`: a datetime with a time zone, or seconds since 1970."""
        due = str(milliseconds_at(when))
        message = outgoing(topic, body, extras, **{names.TIMER_DELIVER_MS: due})
        with self._told(message) as told:
            return told(_checked(await self._send(message), any_status))

    async def send_batch(self, messages: Iterable[Outgoing], *, any_status: bool = False) -> list[Sent]:
        """Store messages of any topics with one wait for the disk; all are refused or none.

        Raises as `send`, where one of them is not as safe as it should be.
        """
        ready = [_renamed(one) for one in messages]
        with ExitStack() as stack:
            told = [stack.enter_context(self._told(one)) for one in ready]
            stored = await self._store_all(ready)
            receipts = [receive(receipt) for receive, receipt in zip(told, stored, strict=True)]
            if not any_status:
                check_ok(*receipts)
            return receipts

    @contextmanager
    def _told(self, message: Outgoing) -> Iterator[Callable[[Sent], Sent]]:
        """Around a send: the observers hear of it, and of the receipt that goes through what this gives."""
        properties = cast(dict[str, str], message.properties)
        ends = tell(self._observers, lambda one: one.sending(message.topic, properties))
        receipts: list[Sent] = []

        def receive(receipt: Sent) -> Sent:
            receipts.append(receipt)
            return receipt

        try:
            yield receive
        except BaseException as error:
            receipt = next(iter(receipts), None)  # of a batch, in which another message may be the one that failed
            failure = None if receipt is not None and receipt.status is SendStatus.PUT_OK else error
            tell(ends, lambda ended: ended(receipt, failure))
            raise
        tell(ends, lambda ended: ended(receipts[0], None))

    async def recall(self, message: Sent) -> None:
        """Take back a message that waits for its time. What was delivered meanwhile is not taken back."""
        if not message.recall_handle:
            raise ValueError(
                f"the message of {message.topic} cannot be recalled: it does not wait, or it waits in a delay level"
            )
        await self._cluster.call(
            lambda stubs: stubs.delivery.Recall,
            delivery_pb2.RecallRequest(topic=message.topic, handle=message.recall_handle),
            delivery_pb2.RecallResponse,
            keep_trying=self._keep_trying,
        )

    async def _send(self, message: Outgoing, order_key: str = "") -> Sent:
        if not order_key:
            return await self._store(message)
        async with self._in_turn(order_key):
            return await self._store(message)

    async def _store(self, message: Outgoing) -> Sent:
        answer = await self._cluster.call(
            lambda stubs: stubs.store.Send,
            send_request(message, False),
            store_pb2.SendResponse,
            keep_trying=self._keep_trying,
        )
        return sent(message.topic, answer.receipt)

    async def _store_all(self, messages: Sequence[Outgoing]) -> list[Sent]:
        answer = await self._cluster.call(
            lambda stubs: stubs.store.SendBatch,
            batch_request(messages, False),
            store_pb2.SendBatchResponse,
            keep_trying=self._keep_trying,
        )
        return [sent(one.topic, receipt) for one, receipt in zip(messages, answer.receipts, strict=True)]

    @asynccontextmanager
    async def _in_turn(self, order_key: str) -> AsyncIterator[None]:
        """One message of a key after the other: a retry must not overtake."""
        turn = self._order.setdefault(order_key, _Turn())
        turn.users += 1
        try:
            async with turn.lock:
                yield
        finally:
            turn.users -= 1
            if not turn.users:
                del self._order[order_key]

    # -- transactions -----------------------------------------------------------------------------------------------

    @asynccontextmanager
    async def transaction(self) -> "AsyncIterator[Transaction]":
        """Messages that consumers get when the block ends well, and never when it raises.

        If the process dies in the block, the broker asks `check` of another instance of the group.
        Raises ValueError without a `group`.
        """
        if not self._group:
            raise ValueError("a transaction needs the producers' group: Producer(..., group=...)")
        self._attend()
        transaction = Transaction(self)
        try:
            yield transaction
        except BaseException:
            await asyncio.shield(self._end(transaction, TransactionState.ROLLBACK))
            raise
        await self._end(transaction, TransactionState.COMMIT)

    async def send_half(self, message: Outgoing) -> Sent:
        """Store one message of a transaction; `Transaction.send` is how it is called."""
        key = message.properties[names.UNIQ_KEY]
        self._ends[key] = TransactionState.UNKNOWN
        half = replace(message, properties={**message.properties, names.TRAN_MSG: "true", names.PGROUP: self._group})
        try:
            with self._told(half) as told:
                return told(await self._store(half))
        except Refused:
            del self._ends[key]
            raise
        except BaseException:
            self._ends[key] = TransactionState.ROLLBACK  # it may be stored, and belongs to nobody
            raise

    async def _end(self, transaction: "Transaction", state: TransactionState) -> None:
        for one in transaction.messages:
            self._ends[one.unique_key] = state
        for one in transaction.messages:
            await self._end_one(one.topic, one.transaction_handle, state, checked=False)
            self._ends.pop(one.unique_key, None)

    async def _end_one(self, topic: str, handle: str, state: TransactionState, *, checked: bool) -> None:
        request = delivery_pb2.EndTransactionRequest(
            topic=topic, handle=handle, ending=state.value, group=self._group, checked=checked
        )
        await self._cluster.call(
            lambda stubs: stubs.delivery.EndTransaction,
            request,
            delivery_pb2.EndTransactionResponse,
            keep_trying=self._keep_trying,
        )

    def _attend(self) -> None:
        if self._attending is None:
            membership = delivery_pb2.Membership(group=self._group, producer=True)
            self._attending = Attending(self._cluster, [membership], self._asked)

    async def _asked(self, command: delivery_pb2.AttendResponse) -> None:
        """The broker asks how a transaction has ended."""
        if command.WhichOneof("command") != "check_transaction":
            return
        asked = command.check_transaction
        state = self._ends.get(asked.transaction_id)
        if state is None and self._check is not None:
            state = await self._looked_up(one_record(asked.record))
        await self._end_one(asked.topic, asked.handle, state or TransactionState.UNKNOWN, checked=True)

    async def _looked_up(self, record: Record) -> TransactionState:
        assert self._check is not None
        if asyncio.iscoroutinefunction(self._check):
            return TransactionState(await self._check(record))
        found = await asyncio.to_thread(self._check, record)
        return TransactionState(await found if isawaitable(found) else found)


class Transaction:
    """The messages of one `Producer.transaction` block."""

    def __init__(self, producer: Producer) -> None:
        self._producer = producer
        self.messages: list[Sent] = []
        """What was sent in it."""

    async def send(self, topic: str, body: bytes | str, **extras: Unpack[Extras]) -> Sent:
        """Store a message that waits for the end of the block."""
        stored = await self._producer.send_half(outgoing(topic, body, extras))
        self.messages.append(stored)  # also one that is not safe: it ends with the others
        return _checked(stored, False)


def _renamed(message: Outgoing) -> Outgoing:
    """The message with a UNIQ_KEY of its own, unless it has one, and properties that observers may add to."""
    repeatable = message.repeatable or names.UNIQ_KEY not in message.properties
    return replace(message, properties={names.UNIQ_KEY: new_id(), **message.properties}, repeatable=repeatable)


def _checked(stored: Sent, any_status: bool) -> Sent:
    if not any_status:
        check_ok(stored)
    return stored


class _Turn:
    """Who waits to send with one order key."""

    def __init__(self) -> None:
        self.lock = asyncio.Lock()
        self.users = 0
