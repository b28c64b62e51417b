"""What is known of the store's log: filled by the link, read by everybody, observed by those who act on a change."""

from collections.abc import Callable

from tandemmq.common.errors import Kind, TandemError
from tandemmq.common.log_output import get_log
from tandemmq.store.v1.replica_log_pb2 import BrokerRole, LogIdentity, LogProgress

log = get_log(__name__)

Observer = Callable[[], None]


class NoStore(TandemError):
    """The replicator has no link to its store, or has not heard from it yet."""

    kind = Kind.AWAY
    remedy = "is the store running, and storeAddress its internal address?"


class LogView:
    """The last word of the store. Everything stays as it was when the link ends, but for `linked`.

    Belongs to the event loop. Observers are called at every change, one after the other, before `update` returns:
    whoever sends log bytes does so in the same turn of the loop in which the store's word arrived.
    """

    def __init__(self) -> None:
        self.linked = False
        """Whether the store talks to us now."""
        self.min_offset = 0
        """Of the oldest byte of the log."""
        self.max_offset = 0
        """After its last byte. May be smaller than before after the store was started anew."""
        self.flushed_offset = 0
        """Below it everything is durable."""
        self.identity = LogIdentity()
        """Role, file size, epoch, names; its role is unspecified before the store has spoken."""
        self._observers: dict[object, Observer] = {}

    @property
    def known(self) -> bool:
        """Whether the store has ever spoken."""
        return self.identity.role != BrokerRole.BROKER_ROLE_UNSPECIFIED

    @property
    def is_master(self) -> bool:
        """Whether the store is a master, as far as we know."""
        return self.identity.role in (BrokerRole.ASYNC_MASTER, BrokerRole.SYNC_MASTER)

    @property
    def is_slave(self) -> bool:
        """Whether the store is a slave, as far as we know."""
        return self.identity.role == BrokerRole.SLAVE

    @property
    def mastership(self) -> tuple[int, int]:
        """Role and epoch: with another epoch a master is another one, even if it never was anything else."""
        return self.identity.role, self.identity.epoch

    @property
    def file_size(self) -> int:
        """Size of a log file; 0 before the store has spoken."""
        return self.identity.file_size

    def observe(self, observer: Observer) -> Callable[[], None]:
        """Call `observer` at every change, from the next one on. Gives what ends that."""
        key = object()
        self._observers[key] = observer
        return lambda: self._observers.pop(key, None) and None

    def update(self, progress: LogProgress) -> None:
        """The store has spoken."""
        self.linked = True
        self.min_offset = progress.min_offset
        self.max_offset = progress.max_offset
        self.flushed_offset = progress.flushed_offset
        if progress.HasField("identity"):
            self.identity = progress.identity
        self._tell()

    def lost(self) -> None:
        """The link has ended."""
        if self.linked:
            self.linked = False
            self._tell()

    def _tell(self) -> None:
        for observer in list(self._observers.values()):
            try:
                observer()
            except Exception as error:  # noqa: BLE001 - one who fails must not keep the others from knowing
                log.failure("an observer of the log failed", error)
