"""Transactions: half messages, how they end, and who is asked when they do not."""

import asyncio
import contextlib
from collections.abc import Callable
from typing import NamedTuple

from tandemmq.common.errors import TandemError
from tandemmq.common.log_output import get_log
from tandemmq.common.timers import first_of
from tandemmq.store.broker.acknowledgement import Acknowledgement
from tandemmq.store.broker.broker import Traffic
from tandemmq.store.broker.group_transfer import PutStatus
from tandemmq.store.delivery.errors import NotDelivering, NotSafe, TransactionEnded, UnknownTransaction
from tandemmq.store.delivery.members.sessions import Sessions
from tandemmq.store.delivery.port import Ending
from tandemmq.store.delivery.transactions.checking import Checking, TransactionRules
from tandemmq.store.delivery.transactions.following import HalfFollowing
from tandemmq.store.delivery.transactions.half_log import HalfLog
from tandemmq.store.delivery.transactions.half_message import committed
from tandemmq.store.delivery.transactions.halves import Halves, PendingTransaction
from tandemmq.store.delivery.transactions.handle import TransactionHandle

log = get_log(__name__)

_SAVE_SECONDS = 1.0
_READ_SECONDS = 5.0
"""So long an ending waits for half messages to be read."""


class HalfView(NamedTuple):
    """A half message that waits for its ending."""

    transaction_id: str
    group: str
    topic: str
    age_ms: int
    """Since its producer made it."""
    checks: int
    handle: str


class Transactions:
    """The part of delivery that keeps half messages; a service of the master."""

    def __init__(
        self,
        half_log: HalfLog,
        acknowledgement: Acknowledgement,
        sessions: Sessions,
        rules: TransactionRules,
        traffic: Traffic,
    ) -> None:
        self._log = half_log
        self._acknowledgement = acknowledgement
        self._traffic = traffic
        self.checking = Checking(half_log, sessions, rules)
        self._following = HalfFollowing(half_log, self.checking.watch)
        self._building: asyncio.Task[None] | None = None
        self._ready = False
        self._end_listening: Callable[[], None] | None = None

    # -- life -------------------------------------------------------------------------------------------------------

    def start(self) -> None:
        """Read both topics; transactions can be ended when that is done."""
        self._building = asyncio.create_task(self._build(), name="building the half messages")

    async def _build(self) -> None:
        try:
            await self._following.build()
        except TandemError as error:
            log.failure("half messages cannot be read: no transaction can be ended", error)
            return
        self._ready = True
        self.checking.start()
        self._end_listening = self._log.store.dispatched.listen(self._following.follow)
        self._following.follow()
        self._log.store.timers.call_later(_SAVE_SECONDS, self._save_again, self._building)

    async def stop(self) -> None:
        """End; what is pending is read again at the next start."""
        if self._building is not None:
            self._building.cancel()
            await asyncio.gather(self._building, return_exceptions=True)
            self._building = None
        if self._end_listening is not None:
            self._end_listening()
            self._end_listening = None
        self.checking.stop()
        if self._ready:
            self._ready = False
            with contextlib.suppress(TandemError):
                self._following.save()

    def _save_again(self, life: object) -> None:
        """Each second of one life, from its start to its stop."""
        if life is not self._building:
            return
        self._following.follow()  # what could not be read when it came
        with contextlib.suppress(TandemError):
            self.checking.keep_up()
            self._following.save()
        self._log.store.timers.call_later(_SAVE_SECONDS, self._save_again, life)

    # -- ending -----------------------------------------------------------------------------------------------------

    async def end_transaction(self, group: str, handle: str, ending: Ending, *, checked: bool = False) -> None:
        """See `port.DeliveryPort`; done when it is as safe as a send. `checked` makes no difference here."""
        if not self._ready and self._building is not None:
            await first_of(self._log.store.timers, (self._building,), _READ_SECONDS)
        if not self._ready:
            raise NotDelivering("Half messages are not read yet.", remedy="Again in a moment.")
        named = TransactionHandle.parse(handle)
        pending = await self._find(named)
        if pending is None and named.queue_offset >= 0:
            pending = self._log.halves.pending(TransactionHandle(handle))  # an id that looks like a handle
        if pending is None:
            self._check_read(named)
            self._repeated(group, named.transaction_id, ending)
        else:
            self._check_group(group, pending.half.group, named.transaction_id)
            if ending is not Ending.UNKNOWN:
                self._end(pending, ending)
        if ending is not Ending.UNKNOWN:
            await self._safe(self._log.end_offset)

    async def _find(self, named: TransactionHandle) -> PendingTransaction | None:
        """The transaction; where its half message is on its way to the disk, when it has arrived there."""
        store, halves = self._log.store, self._log.halves
        pending = halves.pending(named)
        if pending is None:
            store.catch_up()
            self._following.follow()
            pending = halves.pending(named)
        if pending is None and store.dispatched_offset <= named.physical_offset < store.commit_log.max_offset:
            await store.wait_flushed(store.commit_log.max_offset)
            store.catch_up()
            self._following.follow()
            pending = self._log.halves.pending(named)
        return pending

    def _check_read(self, named: TransactionHandle) -> None:
        """While a half message waits for its repair, those after it are not known. Raises NotDelivering."""
        ended = self._log.halves.ended(named.transaction_id)
        if ended is None and self._following.may_find(named.queue_offset):
            raise NotDelivering(
                f"Transaction {named.transaction_id[:100]} cannot be ended now: half messages wait to be read.",
                remedy="Again in a moment.",
            )

    def _end(self, pending: PendingTransaction, ending: Ending) -> None:
        half, half_log = pending.half, self._log
        if self._acknowledgement.refuses:
            self._acknowledgement.check()
        if ending is Ending.ROLLBACK:
            half_log.close(pending, ending)
        else:
            record = half_log.record(half)
            if record is None:
                raise UnknownTransaction(
                    f"The half message of transaction {half.transaction_id} is gone from the log: damaged, or expired.",
                )
            half_log.close(pending, ending, committed(record, half_log.host))
        self._traffic.transaction_ended(half.topic, ending.value, max(half_log.clock.now_ms() - half.stored_ms, 0))

    def _repeated(self, group: str, transaction_id: str, ending: Ending) -> None:
        """Nothing pending has that id: a repeat of the same ending is fine, all else is refused."""
        ended = self._log.halves.ended(transaction_id)
        if ended is None:
            raise UnknownTransaction(
                f"No half message of transaction {transaction_id[:100]} is waiting for its ending.",
                remedy="It may have been given up: see transactionCheckMax.",
            )
        self._check_group(group, ended.group, transaction_id)
        if ending is not Ending.UNKNOWN and ended.ending is not None and ended.ending is not ending:
            raise TransactionEnded(f"Transaction {transaction_id[:100]} has ended before, as {ended.ending.value}.")

    @staticmethod
    def _check_group(group: str, known: str, transaction_id: str) -> None:
        if group and known and group != known:
            raise UnknownTransaction(f"Transaction {transaction_id[:100]} is none of the producers' group {group}.")

    async def _safe(self, end_offset: int) -> None:
        """Wait until all up to here is as durable as a send is."""
        if not end_offset or not self._acknowledgement.waits:
            return
        status = await self._acknowledgement.status(end_offset, True)
        if status is not PutStatus.PUT_OK:
            raise NotSafe(f"The transaction has ended, but that is not known to be safe: {status.name}.")

    # -- views ------------------------------------------------------------------------------------------------------

    @property
    def halves(self) -> Halves:
        """The state, to be read only."""
        return self._log.halves

    def pending(self, most: int = 1_000) -> list[HalfView]:
        """Half messages that wait, at most so many, those that began first first."""
        now = self._log.clock.now_ms()
        views: list[HalfView] = []
        for pending in self._log.halves:
            if len(views) >= most:
                break
            half = pending.half
            handle = TransactionHandle(half.transaction_id, half.queue_offset, half.physical_offset)
            age = max(now - half.begun_ms, 0)
            views.append(HalfView(half.transaction_id, half.group, half.topic, age, pending.checks, str(handle)))
        return views

    def pending_by_topic(self) -> dict[str, int]:
        """How many wait, by topic."""
        return dict(self._log.halves.by_topic)
