"""What this node is, and what it does about it: a slave copies tables, a master does not."""

import asyncio

import grpc

from tandemmq.common.calling.client_channel import Dialer
from tandemmq.common.log_output import get_log
from tandemmq.common.tasks import end_tasks
from tandemmq.common.timers import LoopTimers, Timers, time_limit
from tandemmq.metasync.errors import DocumentNotSaved
from tandemmq.metasync.keeper import Keeper
from tandemmq.metasync.puller import TablePuller
from tandemmq.metasync.queue_ends import take_back
from tandemmq.metasync.request_modes import modes_of_store
from tandemmq.metasync.settings import MetasyncSettings
from tandemmq.metasync.standing import NodeRole, Standing
from tandemmq.metasync.tables import TableKind

log = get_log(__name__)


class OwnNode:
    """The node that the service runs on; changes with its role."""

    def __init__(
        self,
        settings: MetasyncSettings,
        keeper: Keeper,
        puller: TablePuller,
        standing: Standing,
        stores: Dialer,
        timers: Timers | None = None,
    ) -> None:
        """`stores`: calls the store."""
        self.standing = standing
        """What counts now. Changes are refused unless it is a master's."""
        self.puller = puller
        self.broker = settings.broker_name
        self.cluster = settings.broker_cluster_name
        self.master_address = settings.metasync_remoting_master_address or settings.metasync_master_address
        self._leads_to = "" if settings.metasync_remoting_master_address else settings.metasync_master_address or ""
        self.auto_create_groups = settings.auto_create_subscription_group
        self._keeper = keeper
        self._timers: Timers = timers or LoopTimers()
        self._delay = settings.metasync_initial_delay / 1000
        self._last_seconds = 2 * settings.metasync_timeout / 1000
        self._interval = settings.metasync_interval / 1000
        self._pulling: asyncio.Future[None] | None = None
        self._taking_back: asyncio.Future[None] | None = None
        self._store = settings.store_service_address
        self._stores = stores
        self._pause = settings.role_poll_interval / 1000

    def check_master(self, standing: Standing | None = None) -> None:
        """Whether changes may be made here, by what counts now or by another standing. Raises NotTheMaster."""
        (standing or self.standing).check_master(self.master_address, self._leads_to)

    async def request_modes(self) -> str | None:
        """The document of request modes that counts: our store's, or the master's while this is a slave.

        None: that master keeps none. Raises MasterAway, UnreadableDocument, and what a MasterLink raises.
        """
        if self.standing.role is NodeRole.SLAVE:
            return await self.puller.request_modes()
        return await asyncio.to_thread(modes_of_store, self._keeper.root)

    @property
    def tasks(self) -> list["asyncio.Future[None]"]:
        """What runs in the background and has to be cancelled at the end."""
        return [task for task in (self._pulling, self._taking_back) if task is not None]

    async def become(self, standing: Standing) -> None:
        """Take a role.

        A master first copies what its predecessor still says, then gives its tables versions of its own, and only then
        takes changes. Called again with the same role it makes sure of it.

        Raises:
            DocumentNotSaved: tables cannot be written; this is to be called again.
        """
        if standing.role is NodeRole.MASTER:
            if await self._stop_pulling():
                await self._copy_once_more()
            await self._keeper.begin_mastership(standing.epoch)
            before, self.standing = self.standing, standing
            if self._store is not None and (self._taking_back is None or before.role is not NodeRole.MASTER):
                await end_tasks(self._timers, self._taking_back)
                self._taking_back = asyncio.ensure_future(self._take_back(self._store))
            await self._keeper.flush(TableKind.CONSUMER_OFFSETS)
            await self._keeper.flush(TableKind.DELAY_OFFSETS)
            return
        await end_tasks(self._timers, self._taking_back)
        self._taking_back = None
        self.standing = standing
        if standing.role is NodeRole.SLAVE and self._pulling is None:
            self._pulling = asyncio.ensure_future(self.puller.run(self._delay, self._interval))
        if standing.role is NodeRole.FENCED:
            await self._stop_pulling()

    async def _stop_pulling(self) -> bool:
        """False if there was nothing to stop."""
        if self._pulling is None:
            return False
        await end_tasks(self._timers, self._pulling)
        self._pulling = None
        self.puller.stopped()
        return True

    async def _copy_once_more(self) -> None:
        """A master that was replaced on purpose takes no changes, but still answers: what it has is all there is."""
        try:
            async with time_limit(self._timers, self._last_seconds):
                await self.puller.cycle()
        except TimeoutError:
            log.warning("the old master's tables were not copied once more in time")
        except Exception as error:  # noqa: BLE001 - a promotion does not depend on the old master
            log.failure("the old master's tables were not copied once more", error)
        self.puller.stopped()

    async def _take_back(self, store: str) -> None:
        """Until the store has answered once."""
        told = False
        while True:
            try:
                if await take_back(self._keeper, store, self._stores):
                    return
            except (grpc.aio.AioRpcError, DocumentNotSaved) as error:
                reason = error.code().name if isinstance(error, grpc.aio.AioRpcError) else error.message
                if not told:
                    log.warning("offsets not compared with the store's queues yet", store=store, reason=reason)
                told = True
            await self._timers.sleep(self._pause)
