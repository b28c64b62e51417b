"""Receiving with acknowledgement, put together: what fronts ask for, over the parts that do it.

It works while this store is the master. Each time it becomes one, the parts are made anew over the ledger as it is.
"""

import asyncio
from collections.abc import Callable, Coroutine, Sequence, Set
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any

from tandemmq.common.errors import TandemError
from tandemmq.common.log_output import get_log
from tandemmq.common.timers import Timers, my_turn
from tandemmq.common.topic_names import GROUP_TOPICS
from tandemmq.store.broker.acknowledgement import Durability
from tandemmq.store.broker.broker import Broker
from tandemmq.store.broker.group_transfer import PutStatus
from tandemmq.store.broker.postponing import DelayRules
from tandemmq.store.broker.topics import TopicConfig
from tandemmq.store.delivery.clock import DeliveryClock
from tandemmq.store.delivery.errors import NotDelivering, NotSafe
from tandemmq.store.delivery.figures.figures import Figures, GroupFigures
from tandemmq.store.delivery.figures.standings import Standings
from tandemmq.store.delivery.journal.facts import Dealt, GivenAgain, Place
from tandemmq.store.delivery.journal.journal import Journal
from tandemmq.store.delivery.ledger.cursors import Cursors
from tandemmq.store.delivery.ledger.order_lines import OrderLines
from tandemmq.store.delivery.ledger.progress import deals
from tandemmq.store.delivery.ledger.starts import Starts
from tandemmq.store.delivery.members.groups import GroupConfig, GroupTable
from tandemmq.store.delivery.members.sessions import Member, Sessions
from tandemmq.store.delivery.port import ANY, Batch, Outcome, Room, Wish
from tandemmq.store.delivery.receiving.acknowledging import Acknowledger
from tandemmq.store.delivery.receiving.answer import Answer, GivenBatch, Share
from tandemmq.store.delivery.receiving.attempts import AttemptKey, Attempts
from tandemmq.store.delivery.receiving.handles import Handles, Shown, own_topic
from tandemmq.store.delivery.receiving.place_reader import PlaceReader
from tandemmq.store.delivery.receiving.prepared_calls import PreparedCalls, ReceiveCall, receive_call
from tandemmq.store.delivery.receiving.receive_rules import ReceiveRules, admitted
from tandemmq.store.delivery.receiving.receiver import Look, Receiver, too_much
from tandemmq.store.delivery.receiving.renewal import Renewals
from tandemmq.store.delivery.receiving.selection import ParseFilter, Selections
from tandemmq.store.delivery.receiving.side_state import SideState
from tandemmq.store.delivery.receiving.sources import Source, Sources
from tandemmq.store.delivery.receiving.waiting import Alarm, LineKey, Waiters
from tandemmq.store.delivery.retries.dead_letters import Graveyard
from tandemmq.store.delivery.retries.retry_moves import MovesInto, RetryMoves
from tandemmq.store.delivery.retries.sending_back import SendBacks
from tandemmq.store.format.host import Host
from tandemmq.store.log.edges.clock import Clock, SystemClock

log = get_log(__name__)

_MOST_TURNS = 32
"""A receive that has found something looks so many turns of the loop for more, unless it is late by then."""
_MOST_AT_ONCE = 64
"""Messages of a receive that is answered in the turn of the loop in which it comes."""
_ENOUGH_BYTES = 1 << 20
"""Receives that are answered together look no further when they have so much: nobody asked whether there is room."""
_LATER_SECONDS = 0.2
"""A queue that is being put right is looked at again after so long."""


@dataclass(frozen=True, slots=True)
class _Parts:
    """What works during one mastership."""

    side: SideState
    lines: OrderLines
    receiver: Receiver
    acknowledger: Acknowledger
    alarm: Alarm
    renewals: Renewals
    attempts: Attempts
    moves: RetryMoves


class Receiving:
    """See `delivery.Receives` and `delivery.MovesCursors`; a `lifecycle.MasterService`."""

    def __init__(
        self,
        broker: Broker,
        journal: Journal,
        clock: DeliveryClock,
        groups: GroupTable,
        sessions: Sessions,
        store_host: Host,
        rules: ReceiveRules | None = None,
        parse: ParseFilter | None = None,
        timers: Timers | None = None,
        delays: DelayRules | None = None,
        wall: Clock | None = None,
    ) -> None:
        """`store_host`: of copies. `parse`: makes filters of all subscriptions but tags.

        `delays`, `wall`: how long, and by which clock, what moves to a retry topic can wait.
        """
        self.rules = rules or ReceiveRules()
        self._broker = broker
        self._journal = journal
        self._clock = clock
        self._groups = groups
        self._sessions = sessions
        self._timers = timers or broker.store.timers
        self._calls = PreparedCalls(broker.topics, self.rules, Selections(parse))
        self._reader = PlaceReader(broker.store, broker.puller)
        self._starts = Starts(broker.store, broker.topics, journal)
        self._sources = Sources(broker.topics, self._starts, journal.ledger)
        self.graveyard = Graveyard(journal, broker.topics, store_host)
        self.waiters = Waiters(broker.store, self._timers)
        self._cursors = Cursors(broker.store, broker.topics, journal, self._starts, sessions, self._moved)
        delays, wall = delays or DelayRules(), wall or SystemClock()
        self._send_backs = SendBacks(broker.store, broker.topics, journal, self.graveyard, store_host, delays, wall)
        self._moves_into = MovesInto(broker.topics, store_host, delays, wall)
        self.handles = Handles()
        """Their texts; the compiled core may be given to it."""
        self.figures: Figures | None = None
        """What operators see of groups; None while this store does not deliver."""
        self.standings: Standings | None = None
        """The same of single messages."""
        self._parts: _Parts | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._draining = False
        sessions.listen(self._member_changed)
        journal.moved_outside.append(self._moved)

    # -- life -------------------------------------------------------------------------------------------------------

    def start(self) -> None:
        """Begin, with the ledger as it is now."""
        journal, clock = self._journal, self._clock
        ledger = journal.ledger
        side, lines = SideState(ledger), OrderLines(ledger, self._reader, self._timers)
        renewals = Renewals(journal, self._sessions, clock, self._timers, self._look_at_alarm)
        moves = RetryMoves(
            self._moves_into, journal, self._groups, self._reader, clock, self._timers, self.rules.most_in_flight,
            dealt=self._dealt, open_topic=self._open_retry_topic,
        )  # fmt: skip
        receiver = Receiver(
            journal, self._reader, clock, self.rules, self.graveyard, side, lines, moves, self._timers,
            self.handles, dealt=self._dealt, wake=self.waiters.wake_group, open_graveyard=self._open_graveyard,
        )  # fmt: skip
        acknowledger = Acknowledger(
            journal, self._reader, clock, self.graveyard, side, lines, renewals, moves, self.handles, dealt=self._dealt
        )
        alarm = Alarm(ledger, clock, self._timers, self._came_due)
        self._parts = _Parts(side, lines, receiver, acknowledger, alarm, renewals, Attempts(), moves)
        self.figures = Figures(self._broker.store, ledger, self._timers, side.in_flight)
        self.standings = Standings(ledger, clock, self._timers, self._reader)
        self._background(self.figures.run(), "figures of groups")
        if not self._draining:
            self.waiters.resume()
        renewals.start()
        alarm.look()

    async def stop(self) -> None:
        """End, and hold nothing of the ledger any more."""
        parts, self._parts = self._parts, None
        self.figures = self.standings = None
        if parts is not None:
            parts.alarm.end()
            parts.renewals.end()
            parts.moves.end()
        for task in tuple(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        if not self._draining:
            self.waiters.end(NotDelivering.at_present(self._broker.store.replica.elsewhere))

    def figures_now(self) -> list[GroupFigures]:
        """What operators see of groups, as it was some seconds ago."""
        return [] if self.figures is None else self.figures.now

    async def figures_of(self, group: str) -> list[GroupFigures]:
        """The same of one group, as it is at this moment."""
        return [] if self._parts is None or self.figures is None else await self.figures.of(group)

    def dead_letters(self) -> dict[tuple[str, str], int]:
        """By group and topic: messages that became dead letters since the start."""
        return dict(self.graveyard.buried)

    def moved(self) -> dict[tuple[str, str], int]:
        """By group and topic: messages that have moved to the retry topic since this store became the master."""
        return {} if self._parts is None else dict(self._parts.moves.moved)

    def expired(self) -> dict[tuple[str, str], int]:
        """By group and topic: messages that had gone before anybody acknowledged them."""
        return {} if self._parts is None else dict(self._parts.receiver.expired)

    def drain(self) -> None:
        """The store stops: end every wait, and every later one, with StoreStopping."""
        self._draining = True
        self.waiters.stop()

    @property
    def _there(self) -> _Parts:
        if self._parts is None:
            raise NotDelivering.at_present(self._broker.store.replica.elsewhere)
        return self._parts

    # -- receive ----------------------------------------------------------------------------------------------------

    async def receive(self, wish: Wish, room: Room | None = None) -> Batch:
        """See `port.DeliveryPort`."""
        self.waiters.check()
        topic, selection = self._calls.check(wish)
        group = await admitted(wish.group, self._groups, create=self.rules.create_groups)
        call = receive_call(wish, group, topic, selection)
        end = self._timers.time() + wish.wait_ms / 1000
        key = LineKey(wish.group, wish.topic, wish.queue)
        woken = False
        while True:
            try:
                if room is not None:
                    await room(wish.most_bytes)
                answer = Answer(wish.most, wish.most_bytes)
                sources = self._sources_of(group, wish)
                looked = self._looked_alone if wish.attempt_id else self._looked
                look = await looked(call, wish, sources, answer)
                if look.more and not answer.messages:
                    await my_turn(self._timers)
                    continue
            except BaseException:
                if woken:
                    self.waiters.wake_line(key)
                raise
            if answer.messages:
                if answer.is_full() or look.more or look.left:
                    self.waiters.wake_line(key)
                return await self._written(self._batch(wish, answer))
            left = end - self._timers.time()
            if left <= 0:
                if look.blocked:
                    raise too_much(wish.group, wish.topic)
                return GivenBatch()
            if look.later:
                self._timers.call_later(_LATER_SECONDS, self.waiters.wake_line, key)
            found = await self.waiters.wait(key, self._watched(group, wish, sources), left, wish.client_id)
            if found is None:
                return GivenBatch()
            woken = found

    async def _looked_alone(self, call: ReceiveCall, wish: Wish, sources: Sequence[Source], answer: Answer) -> Look:
        """As `_looked`; a repeat of the same attempt, even one that comes meanwhile, is given the same messages."""
        parts = self._there
        key = AttemptKey(wish.group, wish.topic, wish.client_id, wish.attempt_id)
        async with parts.attempts.alone(key):
            parts.receiver.repeat(call, parts.attempts.get(key), answer)
            look = await self._looked(call, wish, sources, answer)
            if answer.messages:
                shown = {source.place: source.shown for source in sources}
                parts.attempts.remember(key, [(one, shown.get(one.place, Shown.AS_ASKED)) for one in answer.shares])
        return look

    async def _looked(self, call: ReceiveCall, wish: Wish, sources: Sequence[Source], answer: Answer) -> Look:
        """What there is for a receive, in as many turns as that takes, up to some."""
        try:
            if call.group.consume_message_orderly:
                await self._there.lines.load({(place.group, place.topic) for place, _ in sources})
            look = self._look(call, wish, sources, answer)
            for _ in range(_MOST_TURNS):
                if not look.over or answer.is_full() or answer.is_late(self._clock.now_ms()):
                    break
                await my_turn(self._timers)
                look = self._there.receiver.look(call, sources, answer)
                self._there.alarm.look()
        except BaseException:
            self._take_back(answer.shares)
            raise
        return look

    def _look(self, call: ReceiveCall, wish: Wish, sources: Sequence[Source], answer: Answer) -> Look:
        parts = self._there
        if wish.renew:
            parts.renewals.heard(wish.group, wish.client_id)
        look = Look() if answer.messages else parts.receiver.look(call, sources, answer)
        parts.alarm.look()
        return look

    def receive_at_once(self, wish: Wish, calls: int = 1) -> list[GivenBatch]:
        """See `port.AtOncePort`."""
        parts = self._parts
        if parts is None or wish.attempt_id or wish.renew or wish.most > _MOST_AT_ONCE:
            return []
        self.waiters.check()
        group = self._groups.get(wish.group)
        if group is None or not group.consume_enable or group.consume_message_orderly:
            return []
        call = self._calls.of(wish, group)
        sources = self._sources_of(group, wish)
        batches: list[GivenBatch] = []
        size = 0
        while len(batches) < calls and size < _ENOUGH_BYTES:
            together = min(calls - len(batches), _MOST_AT_ONCE // wish.most)
            answer = Answer(wish.most * together, wish.most_bytes)
            try:
                look = self._looked_once(parts, call, sources, answer, wish.most)
            except BaseException:
                for batch in batches:
                    batch.release()
                raise
            if answer.messages:
                if len(self.waiters) and (answer.is_full() or look.more or look.left):
                    self.waiters.wake_line(LineKey(wish.group, wish.topic, wish.queue))
                batches += self._batches(wish, answer)
                size += answer.bytes
            if look.over or not (answer.messages and (answer.is_full() or look.left)):
                break
        return batches

    def _looked_once(
        self, parts: _Parts, call: ReceiveCall, sources: Sequence[Source], answer: Answer, most: int
    ) -> Look:
        """What there is in this turn; where that may not be all, no less than `most` for any receive."""
        try:
            look = parts.receiver.look(call, sources, answer)
            parts.alarm.look()
        except BaseException:
            self._take_back(answer.shares)
            raise
        if look.over and not answer.is_full():
            self._take_back(answer.cut(len(answer.messages) // most * most))
        return look

    def _batches(self, wish: Wish, answer: Answer) -> list[GivenBatch]:
        """Those of several receives that want the same."""
        messages, shares, most = answer.messages, answer.shares, wish.most
        self._broker.traffic.pulled(wish.topic, wish.group, len(messages), answer.bytes)
        if len(messages) <= most:
            return [GivenBatch(messages, shares, self._take_back)]
        return [
            GivenBatch(messages[at : at + most], shares[at : at + most], self._take_back)
            for at in range(0, len(messages), most)
        ]

    def _sources_of(self, group: GroupConfig, wish: Wish) -> Sequence[Source]:
        if wish.queue != ANY:
            self._there.moves.spare(group.name, wish.topic)
        return self._sources.of(group, wish.topic, wish.queue)

    @staticmethod
    def _watched(group: GroupConfig, wish: Wish, sources: Sequence[Source]) -> list[Place]:
        """The places whose messages a receive waits for; the retry topic's too where it is not there yet."""
        places = [source.place for source in sources]
        if wish.queue == ANY and not wish.topic.startswith(GROUP_TOPICS):
            retry = own_topic(group.name, wish.topic, Shown.RETRY)
            if not any(place.topic == retry for place in places):
                places += [Place(group.name, retry, queue) for queue in range(max(group.retry_queues, 0))]
        return places

    async def _written(self, batch: GivenBatch) -> GivenBatch:
        """The batch, when a kill does not make it forgotten: what was never known to be given has no invisible time."""
        try:
            await self._journal.written()
        except BaseException:
            batch.release()
            raise
        return batch

    def _batch(self, wish: Wish, answer: Answer) -> GivenBatch:
        sent = partial(self._there.renewals.sent, wish.group, wish.client_id) if wish.renew else None
        self._broker.traffic.pulled(wish.topic, wish.group, len(answer.messages), answer.bytes)
        return GivenBatch(answer.messages, answer.shares, self._way_back(wish), sent)

    def _way_back(self, wish: Wish) -> Callable[[Sequence[Share]], None]:
        """For the messages of an answer that never leaves."""
        if not wish.attempt_id:
            return self._take_back
        attempts, key = self._there.attempts, AttemptKey(wish.group, wish.topic, wish.client_id, wish.attempt_id)
        given = attempts.get(key)

        def back(shares: Sequence[Share]) -> None:
            if attempts.take_back(key, given):
                self._take_back(shares)

        return back

    def _take_back(self, shares: Sequence[Share]) -> None:
        """The answer was never written: its messages are there again, uncounted."""
        parts = self._parts
        if parts is None:
            return
        now = self._clock.now_ms()
        with suppress(NotDelivering):
            for share in shares:
                if share.entry_in(self._journal.ledger.progress(share.place)) is not None:
                    self._journal.note(GivenAgain(share.place, share.offset, share.number - 1, now))
            parts.alarm.look()

    # -- what became of messages ------------------------------------------------------------------------------------

    async def acknowledge(
        self, group: str, topic: str, handles: Sequence[str], *, in_time: bool = False
    ) -> list[Outcome]:
        """See `port.DeliveryPort`."""
        acknowledger = self._there.acknowledger
        if in_time and self._is_ordered(group):
            outcomes = await acknowledger.acknowledge_in_turn(group, topic, handles, in_time=True)
        else:
            outcomes = acknowledger.acknowledge(group, topic, handles, in_time=in_time)
        if any(one.error is None for one in outcomes):
            await self._journal.safe(self._durability(group))
        return outcomes

    def acknowledge_at_once(
        self, group: str, topic: str, handles: Sequence[str], *, in_time: bool = False
    ) -> list[Outcome] | None:
        """See `port.AtOncePort`."""
        if self._parts is None or self._journal.failure is not None or (in_time and self._is_ordered(group)):
            return None
        if self._durability(group) is not Durability.AS_SENDS:
            return None
        return self._parts.acknowledger.acknowledge(group, topic, handles, in_time=in_time)

    def _is_ordered(self, group: str) -> bool:
        config = self._groups.get(group)
        return config is not None and config.consume_message_orderly

    async def change_invisible(self, group: str, topic: str, handle: str, invisible_ms: int) -> str:
        """See `port.DeliveryPort`."""
        parts = self._there
        changed = parts.acknowledger.change(group, topic, handle, invisible_ms)
        for place in parts.side.unblock_all():
            self.waiters.wake(place)
        parts.alarm.look()
        await self._journal.written()
        return changed

    async def give_back(self, group: str, topic: str, handle: str) -> None:
        """See `port.DeliveryPort`."""
        parts = self._there
        parts.acknowledger.give_back(group, topic, handle)
        parts.alarm.look()
        await self._journal.written()

    async def forward(self, group: str, topic: str, handle: str) -> None:
        """See `port.DeliveryPort`."""
        await self._there.acknowledger.forward(group, topic, handle, self._durability(group))

    def _durability(self, group: str) -> Durability:
        config = self._groups.get(group)
        return Durability.AS_SENDS if config is None else config.ack_durability

    async def send_back(self, group: str, physical_offset: int, delay_level: int, max_reconsume_times: int) -> None:
        """See `port.DeliveryPort`.

        Raises MessageNotFound, UnknownGroup, ForbiddenGroup, StoreError, TableNotSaved, NotSafe.
        """
        self._send_backs.check(physical_offset)  # first: a refused call must not have made a group
        config = await admitted(group, self._groups, create=self.rules.create_groups)
        end = await self._send_backs.send_back(config, physical_offset, delay_level, max_reconsume_times)
        if end:
            status = await self._broker.acknowledgement.status(end, True)
            if status is not PutStatus.PUT_OK:
                raise NotSafe(
                    f"The message is sent back, but that is not known to be safe: {status.name}.",
                    remedy="Do not commit beyond it; send it back again: it may come twice then.",
                )

    async def commit(
        self, group: str, topic: str, queue: int, offset: int, *, alone: bool = False, back: bool = False
    ) -> None:
        """See `Cursors.commit`. Raises UnknownGroup, BadDelivery, NoSuchQueue."""
        config = await admitted(group, self._groups, create=self.rules.create_groups)
        await self._cursors.commit(config, topic, queue, offset, alone=alone, back=back)

    async def reset(self, group: str, topic: str, offsets: dict[int, int]) -> None:
        """See `port.DeliveryPort`. Raises UnknownGroup, BadDelivery, NoSuchQueue."""
        config = await admitted(group, self._groups, create=False)
        await self._cursors.reset(config, topic, offsets)

    def gone(self, group: str, client_id: str) -> None:
        """See `port.DeliveryPort`."""
        parts = self._parts
        if parts is not None and self._journal.open:
            self.waiters.gone(group, client_id)
            parts.renewals.gone(group, client_id)
            parts.alarm.look()

    # -- what follows -----------------------------------------------------------------------------------------------

    def _dealt(self, facts: Sequence[Dealt]) -> None:
        """Messages are dealt with: others may have waited for that."""
        parts = self._parts
        if parts is None:
            return
        for place in parts.side.unblock(facts):
            self.waiters.wake(place)
        self._there_is_room(parts.side)
        following = deals(parts.lines.dealt(facts))
        if following:
            self._journal.note(*following)
            self._dealt(following)
        if self._journal.ledger.has_fresh:
            parts.alarm.look()

    def _moved(self, places: Sequence[Place], _reset: Set[Place] = frozenset()) -> None:
        """Cursors were set."""
        parts = self._parts
        if parts is None:
            return
        for place in places:
            parts.lines.forget(place.group, place.topic)
            self.waiters.wake(place)
        self._there_is_room(parts.side)
        parts.alarm.look()

    def _there_is_room(self, side: SideState) -> None:
        """Less is in flight: wake those who wait for room among the messages of all groups."""
        if side.all_blocked:
            for place in side.unblock_all():
                self.waiters.wake(place)

    def _came_due(self, place: Place) -> None:
        self.waiters.wake(place)

    def _look_at_alarm(self) -> None:
        if self._parts is not None:
            self._parts.alarm.look()

    def _member_changed(self, member: Member) -> None:
        """What a member holds that is gone comes again, but not because this store stops: then it comes back."""
        parts = self._parts
        if parts is None or not self._journal.open or self._draining:
            return
        if parts.renewals.changed(member.group, member.client_id):
            self.gone(member.group, member.client_id)

    def _open_graveyard(self, group: str) -> None:
        """Make a group's dead-letter topic; its dead letters are tried again when it is there."""

        async def make() -> None:
            try:
                await self.graveyard.open(group)
            except TandemError as error:
                log.warning("no topic for dead letters", group=group, reason=error.message)

        self._background(make(), f"dead letters of {group}")

    def _open_retry_topic(self, group: GroupConfig) -> None:
        """Make a group's retry topic; its messages are looked at again when it is there."""

        async def make() -> None:
            try:
                topic = TopicConfig(own_topic(group.name, "", Shown.RETRY), group.retry_queues, group.retry_queues)
                await self._broker.topics.add([topic])
            except TandemError as error:
                log.warning("no topic for retries", group=group.name, reason=error.message)

        self._background(make(), f"retries of {group.name}")

    def _background(self, work: Coroutine[Any, Any, None], name: str) -> None:
        if not any(task.get_name() == name for task in self._tasks):
            task = asyncio.create_task(work, name=name)
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        else:
            work.close()
