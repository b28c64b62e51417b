"""Where clients find the master: asked of the other nodes, and told to our store while that is no master.

The store's refusals have it, so that a client that knows one node of a pair finds the other.
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Iterable

import grpc

from tandemmq.common.calling.addresses import check_address
from tandemmq.common.errors import TandemError
from tandemmq.common.log_output import get_log
from tandemmq.common.timers import Timers
from tandemmq.replication.v1.replication_pb2 import StatusRequest
from tandemmq.replication.v1.replication_pb2_grpc import ReplicationStub
from tandemmq.replicator.log_view import LogView
from tandemmq.store.v1.replica_log_pb2 import BrokerRole, LogIdentity, ReplicationProgress, RoleState

log = get_log(__name__)

_LOOK_SECONDS = 2.0
_ANSWER_SECONDS = 2.0


class Signpost:
    """Looks for the master again and again, while our store is a slave or was replaced."""

    def __init__(
        self,
        view: LogView,
        followed: Callable[[], str],
        role_state: Callable[[], Awaitable[RoleState]],
        dial: Callable[[str], grpc.aio.Channel],
        wake: Callable[[], None],
        timers: Timers,
    ) -> None:
        """`followed`: gRPC address of the replicator of the master that was followed last; empty: none.

        `role_state` asks our store, `dial` calls another replicator, `wake` has the store be told.
        """
        self._view = view
        self._followed = followed
        self._role_state = role_state
        self._dial = dial
        self._wake = wake
        self._timers = timers
        self.address = ""
        """Where the master serves clients; empty: nobody knows."""
        self._told: str | None = None

    def begin(self) -> None:
        """A store is linked that knows nothing yet."""
        self._told = None

    def message(self) -> ReplicationProgress | None:
        """What is to be told; None: nothing new."""
        if self.address == (self._told or ""):
            return None
        self._told = self.address
        return ReplicationProgress(master_address=self.address)

    async def run(self) -> None:
        """Until it is cancelled."""
        while True:
            if self._view.linked and _is_no_master(self._view.identity):
                try:
                    self._found(await self._search())
                except TandemError as error:
                    log.info("nobody knows the master", problem=error.explain())
            await self._timers.sleep(_LOOK_SECONDS)

    def _found(self, address: str) -> None:
        if address != self.address:
            log.info("clients are sent to the master", address=address or "unknown")
            self.address = address
            self._wake()

    async def _search(self) -> str:
        """Of the first who is master. Raises OwnStoreUnreachable, UnreadableCertificate, UnreadableSecret."""
        async for address in self._places():
            found = await self._ask(address)
            if found:
                return found
        return ""

    async def _places(self) -> AsyncIterator[str]:
        """Replicators that may be the master's, the likeliest first."""
        followed = self._followed() if self._view.is_slave else ""
        if followed:
            yield followed
        for address in others_of(await self._role_state()):
            if address != followed:
                yield address

    async def _ask(self, address: str) -> str:
        """Where clients find the store there, if it is a master; else an empty text."""
        if check_address(address) is not None:
            return ""
        channel = self._dial(address)
        try:
            answer = await ReplicationStub(channel).Status(StatusRequest(), timeout=_ANSWER_SECONDS)
        except grpc.aio.AioRpcError:
            return ""
        finally:
            await channel.close()
        theirs = answer.identity
        if _is_no_master(theirs) or theirs.epoch < self._view.identity.epoch:
            return ""
        return completed(theirs.client_address, address)


def _is_no_master(identity: LogIdentity) -> bool:
    return identity.role not in (BrokerRole.ASYNC_MASTER, BrokerRole.SYNC_MASTER) or identity.fenced_by_epoch > 0


def others_of(state: RoleState) -> Iterable[str]:
    """Replicators of nodes that a store knows of: those that it has promised to, the newest first; then the group's."""
    promises = sorted(state.promises, key=lambda one: one.epoch, reverse=True)
    found = [one.address for one in promises] + [one.address for one in state.group.members]
    return dict.fromkeys(address for address in found if address)


def completed(client_address: str, replicator: str) -> str:
    """The address for clients; one that names no host is at that of the replicator. Empty: what was told is none."""
    if client_address.startswith(":"):
        client_address = replicator.rpartition(":")[0] + client_address
    return client_address if check_address(client_address) is None else ""
