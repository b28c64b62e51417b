"""RemotingFront: classic clients, put together: which handler answers which code."""

from functools import partial

from tandemmq.common.net.remoting.connection import RemotingConnection
from tandemmq.store.broker.broker import Broker
from tandemmq.store.delivery.delivery import Delivery
from tandemmq.store.fronts.remoting.assignments import Assignments
from tandemmq.store.fronts.remoting.clients import RemotingClients
from tandemmq.store.fronts.remoting.commands import Commands
from tandemmq.store.fronts.remoting.direct_send import DirectFrames, FramesCore
from tandemmq.store.fronts.remoting.dispatch import Dispatch
from tandemmq.store.fronts.remoting.heartbeats import RemotingHeartbeats
from tandemmq.store.fronts.remoting.held_pulls import HeldPulls
from tandemmq.store.fronts.remoting.offsets import RemotingOffsets
from tandemmq.store.fronts.remoting.popping import Popping
from tandemmq.store.fronts.remoting.pulling import Pulling
from tandemmq.store.fronts.remoting.queries import Queries
from tandemmq.store.fronts.remoting.queue_locking import QueueLocking
from tandemmq.store.fronts.remoting.recalling import Recalling
from tandemmq.store.fronts.remoting.relays import Relays
from tandemmq.store.fronts.remoting.replies import Replies
from tandemmq.store.fronts.remoting.request_modes import RequestModes
from tandemmq.store.fronts.remoting.resets import ClassicResets
from tandemmq.store.fronts.remoting.retry_sends import RetrySends
from tandemmq.store.fronts.remoting.returns import Returns
from tandemmq.store.fronts.remoting.rules import Announced, CameBack, RemotingRules, nobody_counts, nobody_to_tell
from tandemmq.store.fronts.remoting.sending import RemotingSending
from tandemmq.store.fronts.remoting.transactions import RemotingTransactions
from tandemmq.store.fronts.remoting.unserved import unserved


class RemotingFront:
    """What the connections of classic clients are served by.

    A handler of other modules is added by `dispatch.add` before the server starts; `clients` knows who is there.
    """

    def __init__(
        self,
        broker: Broker,
        delivery: Delivery,
        rules: RemotingRules,
        dispatch: Dispatch,
        modes: RequestModes,
        announced: Announced = nobody_to_tell,
        core: FramesCore | None = None,
        came_back: CameBack = nobody_counts,
    ) -> None:
        """Adds its handlers to `dispatch`. `announced`, `came_back`: see `rules`. `core`: asked first by sends."""
        self.dispatch = dispatch
        self.clients = RemotingClients(delivery.sessions, delivery.groups.get, broker.store.timers)
        self.resets = ClassicResets(delivery.ledger, broker.store.timers.time)
        held = HeldPulls(self.clients)
        self.resets.on_reset = held.end
        self.clients.tell = Commands(self.resets, rules).tell
        retries = RetrySends(broker, delivery.groups, delivery.locks, create_groups=rules.create_groups)
        sending = RemotingSending(broker, rules, self.dispatch, retries)
        pulling = Pulling(broker, delivery, self.clients, self.resets, held, rules)
        if core is not None:
            times = self.dispatch.times
            self.dispatch.begin_with(DirectFrames(core, broker.acknowledgement, sending, times, pulling.parts))
        for part in (
            sending,
            pulling,
            RemotingHeartbeats(broker, delivery, self.clients, rules, announced),
            RemotingOffsets(broker, delivery, self.clients, self.resets),
            QueueLocking(delivery.locks, rules.broker_name),
            Returns(delivery, lambda topic: broker.topics.get(topic) is not None, came_back),
            RemotingTransactions(delivery),
            Popping(delivery, rules),
            Assignments(broker, self.clients, rules.broker_name, modes),
            Queries(broker),
            Relays(broker, self.clients, rules.broker_name),
            Replies(broker, self.clients, rules, partial(sending.receipt, reply=True)),
            Recalling(delivery),
        ):
            self.dispatch.add(part.handlers())
        self.dispatch.add(unserved())

    def lost(self, connection: RemotingConnection) -> None:
        """A connection has ended."""
        self.dispatch.lost(connection)
        self.clients.lost(connection)
