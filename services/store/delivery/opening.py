"""Making the state of deliveries ready on a master: the journal is read to its end, then facts may be noted."""

from tandemmq.common.log_output import get_log
from tandemmq.common.slices import Slices
from tandemmq.store.delivery.clock import DeliveryClock
from tandemmq.store.delivery.delays.timer_check_file import TimerCheckFile
from tandemmq.store.delivery.journal.follower import JournalFollower
from tandemmq.store.delivery.journal.journal import Journal
from tandemmq.store.delivery.ledger.ledger import DueBetween, Ledger
from tandemmq.store.delivery.ledger.offset_files import OffsetFiles
from tandemmq.store.delivery.receiving.renewal import RENEWED_MS
from tandemmq.store.log.message_store import MessageStore

log = get_log(__name__)

LEAST_WAIT_MS = 5_000
"""After a crash or take-over whoever holds a message has so long to acknowledge it before it comes again."""

RENEWED_WAIT_MS = 30_000
"""After any start or take-over who holds a message with renewal has so long to come back before it comes again."""

LARGEST_INVISIBLE_MS = 12 * 3_600_000
"""No message that was given out stays invisible for longer."""

_KEEP_SECONDS = 5.0


class Opening:
    """Brings ledger and journal to where a master may deliver; and back to following."""

    def __init__(
        self,
        store: MessageStore,
        ledger: Ledger,
        journal: Journal,
        follower: JournalFollower,
        clock: DeliveryClock,
        files: OffsetFiles | None = None,
        timer_check: TimerCheckFile | None = None,
        largest_invisible_ms: int = LARGEST_INVISIBLE_MS,
    ) -> None:
        self._store = store
        self._ledger = ledger
        self._journal = journal
        self._follower = follower
        self._clock = clock
        self._files = files
        self._timer_check = timer_check
        self._largest_ms = largest_invisible_ms
        self._clean = store.recovery.clean_exit
        self._was_slave = False

    def follow(self) -> None:
        """This store is a slave, or fenced: what it knows is what a master's journal says."""
        self._was_slave = True
        self._follower.begin_anew()
        self._follower.follow()

    async def make_ready(self) -> None:
        """Read the journal to its end, and open it for this store's own facts."""
        await self._follower.catch_up()
        await self._follower.dispatched_to(self._store.commit_log.max_offset)
        await self._follower.catch_up()
        now, epoch = self._clock.now_ms(), self._store.replica.mastership.epochs[-1]
        newest = self._follower.newest
        fresh = not self._clean or self._was_slave or newest.log_offset < epoch.start_offset
        start = self._follower.start
        if fresh:
            start = max(start + 1, now)
        slices = Slices(self._store.timers)
        for _ in self._ledger.hold_back(
            DueBetween(now + LEAST_WAIT_MS if fresh else 0, now + self._largest_ms),
            renewed=DueBetween(now + RENEWED_WAIT_MS, now + RENEWED_MS),
        ):
            await slices.pause()
        self._clean, self._was_slave = False, False
        await self._begin(start)
        if self._timer_check is not None:
            self._journal.note(*self._timer_check.facts())
        log.info(
            "the journal of deliveries is read", places=len(self._ledger), entries=self._ledger.entries,
            unreadable=self._follower.unreadable, dropped=self._follower.dropped,
        )  # fmt: skip

    async def _begin(self, start: int) -> None:
        """Open the journal, with what the files say beside it."""
        if self._files is None:
            self._journal.begin(start, self._follower.next)
            return
        await self._files.read()
        try:
            facts = self._files.facts(self._ledger, self._follower.next)
            await self._journal.begin_with(start, self._follower.next, facts)
        except BaseException:
            self._follower.begin_anew()  # the ledger may say what no journal does
            raise


class BaseKeeper:
    """Keeps the base of the journal near its end while nothing is noted, so that old log files may go."""

    def __init__(self, store: MessageStore, journal: Journal) -> None:
        self._timers = store.timers
        self._journal = journal
        self._turn = 0

    def start(self) -> None:
        """Look now and then."""
        self._turn += 1
        self._timers.call_later(_KEEP_SECONDS, self._look, self._turn)

    async def stop(self) -> None:
        """Look no more."""
        self._turn += 1

    def _look(self, turn: int) -> None:
        if turn == self._turn:
            self._journal.keep_base_soon()
            self._timers.call_later(_KEEP_SECONDS, self._look, turn)
