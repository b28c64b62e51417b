"""Telling an old master that it was replaced, when it could not be told at the promotion: as soon as it is back."""

from collections.abc import Callable

import grpc

from tandemmq.common.errors import TandemError
from tandemmq.common.log_output import get_log
from tandemmq.common.timers import Timers
from tandemmq.replication.v1.replication_pb2 import FenceRequest, StatusRequest
from tandemmq.replication.v1.replication_pb2_grpc import ReplicationStub
from tandemmq.replicator.log_view import LogView
from tandemmq.replicator.metrics import ReplicatorMetrics
from tandemmq.store.v1.replica_log_pb2 import BrokerRole

log = get_log(__name__)

_LOOK_SECONDS = 2.0
_LOOK_AGAIN_SECONDS = 10.0
"""At an old master that knows: it may be started once more from an old copy of its directory."""
_ANSWER_SECONDS = 2.0


class Fencer:
    """Asks the node that was followed before, again and again, while ours is a master by promotion."""

    def __init__(
        self,
        view: LogView,
        old_master: Callable[[], str],
        grpc_port: Callable[[], int],
        dial: Callable[[str], grpc.aio.Channel],
        metrics: ReplicatorMetrics,
        timers: Timers,
    ) -> None:
        """`old_master` gives the gRPC address of that node's replicator, or the empty text; `dial` calls it.

        `grpc_port` is our own replicator's, to be told.
        """
        self._dial = dial
        self._view = view
        self._old_master = old_master
        self._grpc_port = grpc_port
        self._metrics = metrics
        self._timers = timers
        self._said = ""

    async def run(self) -> None:
        """Until it is cancelled."""
        while True:
            address, identity, pause = self._old_master(), self._view.identity, _LOOK_SECONDS
            if address and self._view.linked and self._view.is_master and identity.epoch > 1:
                try:
                    pause = await self._look(address, identity.epoch)
                except grpc.aio.AioRpcError as error:
                    self._say("the old master does not answer", address, error.code().name)
                except TandemError as error:
                    self._say("the old master cannot be called", address, error.explain())
            await self._timers.sleep(pause)

    async def _look(self, address: str, epoch: int) -> float:
        """Gives the seconds until the next look. Raises AioRpcError, UnreadableCertificate, UnreadableSecret."""
        channel = self._dial(address)
        try:
            stub = ReplicationStub(channel)
            theirs = (await stub.Status(StatusRequest(), timeout=_ANSWER_SECONDS)).identity
            if theirs.role == BrokerRole.SLAVE or theirs.fenced_by_epoch >= epoch:
                self._say("the old master knows that it was replaced", address, BrokerRole.Name(theirs.role))
                return _LOOK_AGAIN_SECONDS
            elif theirs.epoch >= epoch:
                self._say("another master has no older epoch than this one", address, f"epoch {theirs.epoch}")
            else:
                ours = FenceRequest(epoch=epoch, candidate=self._view.identity.store_id, grpc_port=self._grpc_port())
                await stub.Fence(ours, timeout=_ANSWER_SECONDS)
                self._metrics.fences += 1
                log.warning("an old master came back and was fenced", address=address, epoch=epoch)
            return _LOOK_SECONDS
        finally:
            await channel.close()

    def _say(self, what: str, address: str, detail: str) -> None:
        said = f"{what} {address} {detail}"
        if said != self._said:
            self._said = said
            log.info(what, address=address, detail=detail)
