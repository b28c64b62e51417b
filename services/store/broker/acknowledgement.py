"""What a stored message is acknowledged with: disk and replicas, waited for side by side.

RocketMQ: ``handleDiskFlush`` and ``handleHA``. What replicas say wins over what the disk says.
"""

from tandemmq.store.broker.group_transfer import GroupTransfer, PutStatus
from tandemmq.store.log.message_store import MessageStore
from tandemmq.store.log.replica.mastership import Role


class Acknowledgement:
    """Knows what the store's role and settings promise, and waits for it."""

    def __init__(self, store: MessageStore, transfer: GroupTransfer) -> None:
        """Follow the role of the store, which may change while it runs."""
        self._store = store
        self.transfer = transfer
        self._flushes = store.config.sync_flush
        self._replicates = False
        self.waits = False
        """Whether a send has anything to wait for at all."""
        store.replica.mastership.changed.listen(self.role_changed)
        self.role_changed()

    def role_changed(self) -> None:
        """Read the role anew."""
        self._replicates = self._store.replica.mastership.role is Role.SYNC_MASTER
        self.waits = self._flushes or self._replicates

    @property
    def refuses(self) -> bool:
        """Whether messages that wait for replicas are refused at present."""
        return self._replicates and self.transfer.too_few

    def check(self) -> None:
        """Refuse a message that waits for replicas, before it is stored. Raises InSyncReplicasNotEnough."""
        if self._replicates:
            self.transfer.check()

    async def status(self, end_offset: int, wait: bool) -> PutStatus:
        """The status of messages up to a log offset, when disk and replicas have answered; at once if nobody waits."""
        if not wait:
            if self._flushes:
                self._store.flush_soon(end_offset)
            return PutStatus.PUT_OK
        if not self._replicates:
            return _of_disk(await self._store.wait_flushed(end_offset))
        transferred = self.transfer.wait(end_offset)
        if not self._flushes:
            return transferred if isinstance(transferred, PutStatus) else await transferred
        flushing = self._store.wait_flushed(end_offset)  # both begin now, so waiting for them in turn costs nothing
        replicated = transferred if isinstance(transferred, PutStatus) else await transferred
        on_disk = _of_disk(await flushing)
        return on_disk if replicated is PutStatus.PUT_OK else replicated


def _of_disk(flushed: bool) -> PutStatus:
    return PutStatus.PUT_OK if flushed else PutStatus.FLUSH_DISK_TIMEOUT
