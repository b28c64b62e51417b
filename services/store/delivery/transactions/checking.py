"""Check back: asking producers about transactions that have not ended, and giving up those that nobody ends.

One timer over one heap. A check counts when a producer's connection took it (trap T26 of the Java broker).
"""

import heapq
from typing import NamedTuple

from tandemmq.common.errors import TandemError
from tandemmq.common.log_output import get_log
from tandemmq.store.delivery.members.sessions import CheckTransaction, Sessions
from tandemmq.store.delivery.port import Ending
from tandemmq.store.delivery.transactions.half_log import HalfLog
from tandemmq.store.delivery.transactions.half_message import HalfMessage, discarded
from tandemmq.store.delivery.transactions.halves import PendingTransaction
from tandemmq.store.delivery.transactions.handle import TransactionHandle
from tandemmq.store.format.record import Record

log = get_log(__name__)

MOST_BEHIND = 50_000
"""So far may the oldest pending half message lie after the end of its queue; then it is appended again.

A start reads the queue from there on.
"""
_AT_ONCE = 100
_DEAD_ITEMS = 10_000


class TransactionRules(NamedTuple):
    """What is to be known of the settings."""

    timeout_ms: int = 6_000
    """After so long a transaction is asked about for the first time (transactionTimeOut)."""
    most_checks: int = 15
    """Checks after which it is given up (transactionCheckMax)."""
    interval_ms: int = 30_000
    """Between two checks (transactionCheckInterval)."""
    reserved_ms: int = 72 * 3_600_000
    """After so long the log's files go (fileReservedTime)."""

    @property
    def most_age_ms(self) -> int:
        """A half message of this age is given up, before its file goes."""
        return self.reserved_ms - min(3_600_000, self.reserved_ms // 10)


class Checking:
    """Asks when it is time."""

    def __init__(self, half_log: HalfLog, sessions: Sessions, rules: TransactionRules) -> None:
        self._log = half_log
        self._sessions = sessions
        self._rules = rules
        self._timers = half_log.store.timers
        self._due: list[tuple[float, int]] = []  # by the timers' clock: when, and the queue offset of the newest record
        self._next = float("inf")
        self._running = False
        self.checks = 0
        """Checks that were delivered."""
        self.undelivered = 0
        """Times that there was nobody to ask."""
        self.given_up = 0
        """Half messages that went to the discard topic."""

    def start(self) -> None:
        """Begin to ask about what is watched."""
        self._running = True
        self._next = float("inf")
        self._arm()

    def stop(self) -> None:
        """Ask nobody any more, and watch nothing."""
        self._running = False
        self._due.clear()

    # -- when -------------------------------------------------------------------------------------------------------

    def watch(self, pending: PendingTransaction) -> None:
        """Ask about it when it is due, counted from when its newest record was stored."""
        half, rules = pending.half, self._rules
        if pending.checks:
            wait = rules.interval_ms
        else:
            wait = half.immunity_ms if half.immunity_ms >= 0 else rules.timeout_ms
        age = self._log.clock.now_ms() - half.stored_ms
        self._at(half, min(max(wait - age, 0), wait))

    def _at(self, half: HalfMessage, wait_ms: int) -> None:
        when = self._timers.time() + wait_ms / 1000
        heapq.heappush(self._due, (when, half.queue_offset))
        if len(self._due) > 2 * len(self._log.halves) + _DEAD_ITEMS:
            self._due = [item for item in self._due if self._log.halves.at(item[1]) is not None]
            heapq.heapify(self._due)
        self._arm()

    def _arm(self) -> None:
        if self._running and self._due and self._due[0][0] < self._next:
            self._next = self._due[0][0]
            self._timers.call_at(self._next, self._look, self._next)

    def _look(self, armed: float) -> None:
        """Ask about what is due; many are spread over turns of the loop."""
        if not self._running or armed != self._next:
            return  # stopped, or something earlier has come since
        self._next = float("inf")
        now = self._timers.time()
        for _ in range(_AT_ONCE):
            if not self._due or self._due[0][0] > now:
                break
            pending = self._log.halves.at(heapq.heappop(self._due)[1])
            if pending is not None:
                self._see_to(pending)
        self._arm()

    # -- what -------------------------------------------------------------------------------------------------------

    def _see_to(self, pending: PendingTransaction) -> None:
        """Ask about one, or give it up; what the log does not take now is tried again."""
        half = pending.half
        try:
            record = self._log.record(half)
            if record is None:
                log.error("a half message is gone from the log, nobody can end it", transaction=half.transaction_id)
                self._log.close(pending, Ending.ROLLBACK)
            elif pending.checks >= self._rules.most_checks or self._too_old(half):
                self._log.close(pending, Ending.ROLLBACK, discarded(record, self._log.host))
                self.given_up += 1
                log.warning("a transaction was given up", transaction=half.transaction_id, checks=pending.checks)
            else:
                self._ask(pending, record)
        except TandemError as error:
            log.error("a transaction cannot be seen to", transaction=half.transaction_id, reason=error.message)
        if self._log.halves.at(pending.half.queue_offset) is pending:
            self._at(pending.half, self._rules.interval_ms)

    def _too_old(self, half: HalfMessage) -> bool:
        return self._log.clock.now_ms() - half.stored_ms >= self._rules.most_age_ms

    def _ask(self, pending: PendingTransaction, record: Record) -> None:
        half = pending.half
        handle = TransactionHandle(half.transaction_id, half.queue_offset, half.physical_offset)
        command = CheckTransaction(half.group, half.topic, half.transaction_id, str(handle), record.encode())
        if not self._sessions.ask_producer(half.group, command):
            self.undelivered += 1
            return
        self.checks += 1
        pending.checks += 1
        self._log.renew(pending, record, pending.checks)

    def keep_up(self) -> None:
        """Append again what holds the saved positions back, so that a start does not read what has long ended."""
        halves = self._log.halves
        for _ in range(_AT_ONCE):
            oldest = halves.oldest
            if oldest is None or halves.length <= MOST_BEHIND + 2 * len(halves):
                return
            record = self._log.record(oldest.half)
            if record is None:
                return
            self._log.renew(oldest, record, oldest.checks)
            self.watch(oldest)
