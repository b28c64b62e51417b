"""All that is delivered later, as one service."""

from tandemmq.store.broker.broker import Broker
from tandemmq.store.broker.postponing import DelayRules
from tandemmq.store.delivery.delays.counts import DelayCounts
from tandemmq.store.delivery.delays.due_copies import DueCopies
from tandemmq.store.delivery.delays.levels import Levels
from tandemmq.store.delivery.delays.timed_messages import TimedMessages
from tandemmq.store.delivery.delays.timer_follower import TimerFollower
from tandemmq.store.delivery.delays.timer_index import TimerIndex
from tandemmq.store.delivery.journal.journal import Journal
from tandemmq.store.format.host import Host
from tandemmq.store.log.edges.clock import Clock
from tandemmq.store.log.edges.disk import Disk

_DIRECTORY = "timers"
_LEAST_ROLL_MS = 60_000


class Delays:
    """Levels and timers of one store. The index of timers is kept all the time, also on a slave (`follower`)."""

    def __init__(
        self, broker: Broker, journal: Journal, wall: Clock, disk: Disk, host: Host, rules: DelayRules
    ) -> None:
        """`wall`: the clock that delivery times are meant by. `host`: the store host of what is delivered."""
        store = broker.store
        self.counts = DelayCounts()
        copies = DueCopies(journal, host, broker.traffic)
        self.levels = Levels(store, journal, copies, wall, rules.levels_ms, self.counts)
        roll_after_ms = max(store.config.file_reserved_time * 1_800_000, _LEAST_ROLL_MS)  # half of it
        timing = (rules.precision_ms, roll_after_ms)
        self.index = TimerIndex(store.config.store_path_root_dir / _DIRECTORY, disk, timing)
        self.follower = TimerFollower(
            store, self.index, *timing, progress=lambda: journal.ledger.timers, counts=self.counts
        )
        self.timed = TimedMessages(
            store, journal, copies, self.follower, self.index, wall, host, *timing, counts=self.counts
        )
        store.keep_from(lambda: self.index.oldest_physical)

    def start(self) -> None:
        """Deliver what is due from now on, with the progress that the ledger knows."""
        self.levels.start()
        self.timed.start()

    async def stop(self) -> None:
        """End; what was delivered is noted."""
        await self.timed.stop()
        await self.levels.stop()
