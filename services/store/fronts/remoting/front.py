"""RemotingFront: classic clients, put together: which handler answers which code."""

from collections.abc import Mapping

from tandemmq.common.guard import CallGuard
from tandemmq.common.wire.remoting.frames import Frame
from tandemmq.store.broker.broker import Broker
from tandemmq.store.delivery.delivery import Delivery
from tandemmq.store.fronts.remoting.clients import Clients
from tandemmq.store.fronts.remoting.commands import Commands
from tandemmq.store.fronts.remoting.connection import Connection
from tandemmq.store.fronts.remoting.dispatch import CallTimes, Dispatch
from tandemmq.store.fronts.remoting.heartbeats import Heartbeats
from tandemmq.store.fronts.remoting.held_pulls import HeldPulls
from tandemmq.store.fronts.remoting.identity import Identity
from tandemmq.store.fronts.remoting.offsets import Offsets
from tandemmq.store.fronts.remoting.pulling import Pulling
from tandemmq.store.fronts.remoting.queries import Queries
from tandemmq.store.fronts.remoting.queue_locking import QueueLocking
from tandemmq.store.fronts.remoting.relays import Relays
from tandemmq.store.fronts.remoting.replies import Replies
from tandemmq.store.fronts.remoting.resets import Resets
from tandemmq.store.fronts.remoting.retry_sends import RetrySends
from tandemmq.store.fronts.remoting.returns import Returns
from tandemmq.store.fronts.remoting.rules import RemotingRules
from tandemmq.store.fronts.remoting.sending import Sending
from tandemmq.store.fronts.remoting.transactions import Transactions


class RemotingFront:
    """What the connections of classic clients are served by; see `connection.Served`.

    A handler of other modules is added by `dispatch.add` before the server starts; `clients` knows who is there.
    """

    def __init__(
        self,
        broker: Broker,
        delivery: Delivery,
        rules: RemotingRules,
        guard: CallGuard,
        secrets: Mapping[str, str],
        metrics: CallTimes,
    ) -> None:
        """`secrets`: users' signing secrets. Call it inside the running event loop."""
        self.dispatch = Dispatch(Identity(guard, secrets), metrics)
        self.clients = Clients(delivery.sessions, delivery.groups.get)
        self.resets = Resets(delivery.ledger, broker.store.timers.time)
        held = HeldPulls()
        self.resets.on_reset = held.end
        self.clients.tell = Commands(self.resets, rules).tell
        retries = RetrySends(broker, delivery.groups, delivery.locks, create_groups=rules.create_groups)
        self._sending = Sending(broker, rules, self.dispatch, retries)
        for part in (
            self._sending,
            Pulling(broker, delivery, self.clients, self.resets, held, rules),
            Heartbeats(broker, delivery, self.clients, rules),
            Offsets(broker, delivery, self.resets),
            QueueLocking(delivery.locks, rules.broker_name),
            Returns(delivery),
            Transactions(delivery),
            Queries(broker),
            Relays(broker, self.clients, rules.broker_name),
            Replies(broker, self.clients, rules, self._sending.receipt),
        ):
            self.dispatch.add(part.handlers())

    def frame(self, frame: Frame, connection: Connection) -> None:
        """See `connection.Served`."""
        self.dispatch.frame(frame, connection)

    def read(self) -> None:
        """See `connection.Served`: what was sent is stored together."""
        self._sending.flush()

    def lost(self, connection: Connection) -> None:
        """See `connection.Served`."""
        self.clients.lost(connection)

    async def stop(self) -> None:
        """Answer nothing any more."""
        await self.dispatch.stop()
