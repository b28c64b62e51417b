"""Offsets: where queues begin and end, where groups stand, and what they have dealt with."""

from collections.abc import Awaitable

from tandemmq.common.access.needs import Action, subscribe
from tandemmq.common.access.needs import group as use_group
from tandemmq.common.wire.remoting.codes import RequestCode, ResponseCode
from tandemmq.common.wire.remoting.command import Command
from tandemmq.store.broker.broker import Broker
from tandemmq.store.broker.errors import BadRequest, NoSuchQueue
from tandemmq.store.broker.offsets import QueueState
from tandemmq.store.broker.reading import may_have_been_lost, read_whole
from tandemmq.store.delivery.delivery import Delivery
from tandemmq.store.delivery.journal.facts import Place
from tandemmq.store.delivery.ledger.starts import near_the_end
from tandemmq.store.delivery.ledger.ways import Way
from tandemmq.store.format.record import decode_record
from tandemmq.store.fronts.remoting.call import Handler, RemotingCall
from tandemmq.store.fronts.remoting.clients import RemotingClients
from tandemmq.store.fronts.remoting.resets import ClassicResets

_NOT_FOUND = "Not found, V3_0_6_SNAPSHOT maybe this group consumer boot first"
_RESET = "Offset has been previously reset"


class RemotingOffsets:
    """Answers about them."""

    def __init__(self, broker: Broker, delivery: Delivery, clients: RemotingClients, resets: ClassicResets) -> None:
        self._broker = broker
        self._delivery = delivery
        self._clients = clients
        self._resets = resets

    def handlers(self) -> dict[int, Handler]:
        """By request code."""
        return {
            RequestCode.QUERY_CONSUMER_OFFSET: self.position,
            RequestCode.UPDATE_CONSUMER_OFFSET: self.commit,
            RequestCode.SEARCH_OFFSET_BY_TIMESTAMP: self.by_time,
            RequestCode.GET_MAX_OFFSET: self.last,
            RequestCode.GET_MIN_OFFSET: self.first,
            RequestCode.GET_EARLIEST_MSG_STORETIME: self.earliest,
        }

    # -- groups -----------------------------------------------------------------------------------------------------

    def position(self, call: RemotingCall) -> Awaitable[Command] | Command:
        """QUERY_CONSUMER_OFFSET; of a master that has just become one, as soon as it knows."""
        return self._position_when_known(call) if self._delivery.opening else self._position(call)

    async def _position_when_known(self, call: RemotingCall) -> Command:
        await self._delivery.known()
        return self._position(call)

    def _position(self, call: RemotingCall) -> Command:
        """QUERY_CONSUMER_OFFSET: below it all is dealt with.

        A group that is new begins at 0 where that is near, and where there is nothing yet: else it might miss what
        comes before it has found the end. (RocketMQ 5 leaves that to the client.)
        """
        place = _place(call)
        call.demand(use_group(place.group, Action.VIEW))
        progress = self._delivery.ledger.progress(place)
        if progress is not None:
            self._clients.of(call.connection).knows_position(place, progress.cursor)
            return call.ok({"offset": progress.cursor})
        may_be_zero = call.fields.flag_or("setZeroIfNotFound", True)
        if may_be_zero and self._begins_at_0(place):
            return call.ok({"offset": 0})
        return call.reply(ResponseCode.QUERY_NOT_FOUND, _NOT_FOUND, {})

    def _begins_at_0(self, place: Place) -> bool:
        queue = self._broker.store.queue(place.topic, place.queue)
        if queue is not None:
            return near_the_end(self._broker.store, queue)
        config = self._broker.topics.get(place.topic)
        lost = may_have_been_lost(self._broker.store, place.topic, place.queue)
        return config is not None and 0 <= place.queue < config.read_queues and not lost

    async def commit(self, call: RemotingCall) -> Command:
        """UPDATE_CONSUMER_OFFSET: all below is dealt with; backwards by who knows where the group stands."""
        place = _place(call)
        call.demand(use_group(place.group))
        if self._resets.pending(place) is not None:
            return call.reply(ResponseCode.SUCCESS, _RESET)
        offset = call.fields.int64("commitOffset")
        back = self._goes_back(call, place, offset)
        await self._delivery.commit(place.group, place.topic, place.queue, offset, alone=True, back=back)
        return call.ok()

    def _goes_back(self, call: RemotingCall, place: Place, offset: int) -> bool:
        """Whether an offset below the present one is meant: a program that pulls has gone back, or a tool sets it.

        Else it is old: of a client that has not heard where the group stands now, as another client or an operator
        has set it. A push consumer only goes on. And what others hold and acknowledge would come again.
        """
        client, progress = self._clients.of(call.connection), self._delivery.ledger.progress(place)
        if progress is None or offset >= progress.cursor:
            client.knows_position(place, offset)
            return False
        if Way.ACKNOWLEDGES in self._delivery.ways.of(place.group) or not client.has_reached(place, progress.cursor):
            return False
        client.knows_position(place, offset)
        return all(self._clients.pulls(member) for member in self._clients.sessions.consumers(place.group))

    # -- queues -----------------------------------------------------------------------------------------------------

    def first(self, call: RemotingCall) -> Command:
        """GET_MIN_OFFSET; 0 for a queue that is not there."""
        state = self._state(call)
        return call.ok({"offset": 0 if state is None else state.min_offset})

    def last(self, call: RemotingCall) -> Command:
        """GET_MAX_OFFSET: the number of the next message that consumers will see; 0 for a queue that is not there."""
        state = self._state(call)
        return call.ok({"offset": 0 if state is None else state.max_offset})

    def by_time(self, call: RemotingCall) -> Command:
        """SEARCH_OFFSET_BY_TIMESTAMP: the first message stored then or later; with UPPER the last one not later."""
        time_ms = max(call.fields.int64("timestamp"), 0)
        upper = call.fields.text_or("boundaryType", "LOWER").upper() == "UPPER"
        state = self._state(call, time_ms + 1 if upper else time_ms)
        if state is None or state.at_time is None:
            return call.ok({"offset": 0})
        found = state.at_time - 1 if upper else state.at_time
        return call.ok({"offset": max(found, state.min_offset)})

    def earliest(self, call: RemotingCall) -> Command:
        """GET_EARLIEST_MSG_STORETIME: when the first message of a queue was stored; -1 where there is none."""
        topic, queue_id, state = call.fields.text("topic"), call.fields.int32("queueId"), self._state(call)
        stored, store = -1, self._broker.store
        queue = store.queue(topic, queue_id)
        if state is not None and queue is not None and state.min_offset < state.max_offset:
            unit = queue.unit(state.min_offset)
            data = None if unit is None else read_whole(store, unit.physical_offset, unit.size)
            stored = -1 if data is None else decode_record(data, verify=False).store_timestamp
        return call.ok({"timestamp": stored})

    def _state(self, call: RemotingCall, time_ms: int | None = None) -> QueueState | None:
        """The queue that is asked about; None where there is none."""
        topic, queue_id = call.fields.text("topic"), call.fields.int32("queueId")
        call.demand(subscribe(topic, Action.VIEW))
        try:
            return self._broker.offsets_of(topic, queue_id, time_ms)
        except (NoSuchQueue, BadRequest):
            return None


def _place(call: RemotingCall) -> Place:
    fields = call.fields
    return Place(fields.text("consumerGroup"), fields.text("topic"), fields.int32("queueId"))
