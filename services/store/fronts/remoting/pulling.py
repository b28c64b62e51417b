"""Pulls: PULL_MESSAGE, and LITE_PULL_MESSAGE, which is the same. One that finds nothing may be held until it does."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import NamedTuple

from tandemmq.common.access.needs import group as use_group
from tandemmq.common.access.needs import subscribe
from tandemmq.common.errors import TandemError
from tandemmq.common.log_output import get_log
from tandemmq.common.wire.remoting.codes import RequestCode, ResponseCode
from tandemmq.common.wire.remoting.command import Command
from tandemmq.store.broker.broker import Broker, Traffic
from tandemmq.store.broker.pulled import NOTHING_YET, PullAnswer, PullStatus, Wanted
from tandemmq.store.broker.topics import TopicTable
from tandemmq.store.delivery.delivery import Delivery
from tandemmq.store.delivery.filters.subscriptions import parse
from tandemmq.store.delivery.journal.facts import Place
from tandemmq.store.delivery.members.groups import GroupConfig, GroupTable
from tandemmq.store.delivery.port import EVERYTHING, FilterKind, Subscription
from tandemmq.store.delivery.receiving.receive_rules import admitted, consuming
from tandemmq.store.delivery.receiving.selection import Selection, Selections
from tandemmq.store.fronts.remoting.call import Handler, RemotingCall
from tandemmq.store.fronts.remoting.clients import RemotingClients
from tandemmq.store.fronts.remoting.filtered_pull import filtered
from tandemmq.store.fronts.remoting.heartbeats import filter_kind
from tandemmq.store.fronts.remoting.held_pulls import HeldPulls
from tandemmq.store.fronts.remoting.pull_header import COMMIT, MOST_FRAME, SUBSCRIPTION, SUSPEND, PullHeader
from tandemmq.store.fronts.remoting.resets import ClassicResets
from tandemmq.store.fronts.remoting.rules import RemotingRules
from tandemmq.store.fronts.remoting.statuses import RemotingRefusal
from tandemmq.store.log.message_store import MessageStore

log = get_log(__name__)

_MOST_SUSPEND_MS = 60_000


class PlainPulls(NamedTuple):
    """What the compiled core needs for pulls that find something at once: see `CompiledPullFrames`."""

    store: MessageStore
    topics: TopicTable
    groups: GroupTable
    clients: RemotingClients
    resets: ClassicResets
    traffic: Traffic
    bring: Callable[[str, str, int, int], None]
    """Commits the position that a pull brings along."""
    most_messages: int
    most_bytes: int


class Pulling:
    """Answers pulls."""

    def __init__(
        self,
        broker: Broker,
        delivery: Delivery,
        clients: RemotingClients,
        resets: ClassicResets,
        held: HeldPulls,
        rules: RemotingRules,
    ) -> None:
        self._broker = broker
        self._delivery = delivery
        self._clients = clients
        self._resets = resets
        self._held = held
        self._rules = rules
        self._selections = Selections(parse)
        self._commits: set[asyncio.Task[None]] = set()

    @property
    def parts(self) -> PlainPulls | None:
        """For the core; None where answers may advise a slave, which is decided for each of them."""
        broker, rules = self._broker, self._rules
        if broker.puller.advises:
            return None
        known = broker.store, broker.topics, self._delivery.groups, self._clients, self._resets, broker.traffic
        return PlainPulls(*known, self._bring, rules.most_messages, rules.most_bytes)

    def handlers(self) -> dict[int, Handler]:
        """By request code."""
        return {RequestCode.PULL_MESSAGE: self.pull, RequestCode.LITE_PULL_MESSAGE: self.pull}

    def pull(self, call: RemotingCall) -> Command | Awaitable[Command]:
        """PULL_MESSAGE: messages of one queue from an offset on. Answered at once where nothing is waited for."""
        header = PullHeader.of(call.command)
        if call.principal is not None:
            call.demand(use_group(header.group), subscribe(header.topic))
        group = self._delivery.groups.get(header.group)
        return self._first_of_group(call, header) if group is None else self._pull(call, header, group)

    async def _first_of_group(self, call: RemotingCall, header: PullHeader) -> Command:
        """The group is made first. Raises UnknownGroup, ForbiddenGroup, BadDelivery. A slave makes no groups."""
        create = self._rules.create_groups and self._broker.store.writable
        answer = self._pull(call, header, await admitted(header.group, self._delivery.groups, create=create))
        return answer if isinstance(answer, Command) else await answer

    def _pull(self, call: RemotingCall, header: PullHeader, group: GroupConfig) -> Command | Awaitable[Command]:
        self._check(header, consuming(group))
        selection = self._selections.select(self._subscription(header))
        if header.sys_flag & COMMIT and header.commit_offset > 0:
            self._bring(header.group, header.topic, header.queue_id, header.commit_offset)
        moved = self._moved(call, header)
        if moved is not None:
            return _answer(call, header, moved, 0)
        wanted = Wanted(
            header.topic,
            header.queue_id,
            header.offset,
            min(max(header.most, 1), self._rules.most_messages),
            min(max(header.most_bytes, 1), self._rules.most_bytes, MOST_FRAME),
            selection.tags,
            header.group,
        )
        pulled = None
        if selection.properties is None and not call.connection.stalled:
            pulled = self._broker.pull_at_once(wanted)
        if pulled is None or _waits(header, pulled):
            return self._later(call, header, wanted, selection, pulled)
        return _answer(call, header, pulled, self._broker.advice(pulled))

    async def _later(
        self, call: RemotingCall, header: PullHeader, wanted: Wanted, selection: Selection, pulled: PullAnswer | None
    ) -> Command:
        """Where something is waited for. `pulled`: what was found, if that is known."""
        if pulled is None:
            pulled = await self._look(call, wanted, selection, 0)
        if _waits(header, pulled):
            pulled = await self._wait(call, header, wanted, selection, pulled)
        return _answer(call, header, pulled, self._broker.advice(pulled))

    # -- before -----------------------------------------------------------------------------------------------------

    def _check(self, header: PullHeader, group: GroupConfig) -> None:
        """Raises RemotingRefusal: it may not read as it does."""
        said = self._clients.consumes(header.group)
        broadcast = said is not None and said.message_model == "BROADCASTING"
        if broadcast and not group.consume_broadcast_enable:
            raise RemotingRefusal(
                ResponseCode.NO_PERMISSION, f"the consumer group[{header.group}] can not consume by broadcast way"
            )

    def _subscription(self, header: PullHeader) -> Subscription:
        """What is wanted: as the pull says, or the newest heartbeat. Raises ProtocolRefusal.

        A client filters tags itself too. So one whose heartbeat has not come yet, or is older than the request, gets
        its messages; RocketMQ would keep it waiting for up to half a minute.
        """
        kind = filter_kind(header.kind)
        if header.sys_flag & SUBSCRIPTION:
            return Subscription(header.expression or "*", kind)
        said = self._clients.consumes(header.group)
        found = None if said is None else said.topics.get(header.topic)
        if found is not None:
            return found.subscription
        if kind is FilterKind.TAG:
            return EVERYTHING
        raise RemotingRefusal(ResponseCode.SUBSCRIPTION_NOT_EXIST, "the consumer's subscription not exist")

    def _bring(self, group: str, topic: str, queue: int, offset: int) -> None:
        """The position that a pull brings along; it is not waited for."""
        if not self._delivery.delivering:
            return
        place = Place(group, topic, queue)
        known = self._delivery.ledger.progress(place)
        if (known is not None and offset <= known.cursor) or self._resets.pending(place) is not None:
            return
        task = asyncio.get_running_loop().create_task(self._commit_to(place, offset), name="a commit")
        self._commits.add(task)
        task.add_done_callback(self._commits.discard)

    async def _commit_to(self, place: Place, offset: int) -> None:
        try:
            await self._delivery.commit(place.group, place.topic, place.queue, offset, alone=True)
        except TandemError as error:
            log.debug("a position that a pull brought along is not kept", group=place.group, reason=error.message)

    def _moved(self, call: RemotingCall, header: PullHeader) -> PullAnswer | None:
        """The answer to a consumer whose position an operator has set, and who has not heard of it."""
        place = header.place
        if self._resets.pending(place) is None:
            return None
        told = self._clients.takes_resets(call.connection, place.group)
        position = self._resets.untold(place, header.offset, told)
        if position is None:
            return None
        queue = self._broker.store.queue(place.topic, place.queue)
        first, last = (0, 0) if queue is None else (queue.readable_begin, queue.readable_end)
        return _Reset(PullStatus.OFFSET_OVERFLOW_BADLY, position, first, last)

    # -- looking ----------------------------------------------------------------------------------------------------

    async def _look(self, call: RemotingCall, wanted: Wanted, selection: Selection, seconds: float) -> PullAnswer:
        """Answers are made while the client reads. Raises PeerGone, and as `Broker.pull`.

        How large they may be is asked nowhere here. Where nothing is waited for, nothing is measured either.
        """

        async def room(_: int) -> None:
            await call.connection.drained()

        await call.connection.drained()
        then = room if seconds else None
        if selection.properties is not None:
            return await filtered(self._broker, wanted, selection.properties, seconds, then)
        return await self._broker.pull(wanted, seconds, then)

    async def _wait(
        self, call: RemotingCall, header: PullHeader, wanted: Wanted, selection: Selection, pulled: PullAnswer
    ) -> PullAnswer:
        """Hold the pull; when the time is over, what was found at first is told."""
        seconds = min(max(header.suspend_ms, 0), _MOST_SUSPEND_MS) / 1000
        looking = self._look(call, wanted, selection, seconds)
        later = await self._held.hold(header.group, header.topic, call.connection, looking)
        if later is None:  # an operator has set the position
            return self._moved(call, header) or pulled
        if later.status is PullStatus.NO_NEW_MESSAGE:
            status = pulled.status if later.next_offset == header.offset else PullStatus.NO_MATCHED_MESSAGE
            return replace(later, status=status)
        return later


def _waits(header: PullHeader, pulled: PullAnswer) -> bool:
    """Whether a pull that found this is held until there is something."""
    return bool(header.sys_flag & SUSPEND) and pulled.status in NOTHING_YET and pulled.next_offset == header.offset


_REMARKS = {one: one.name for one in PullStatus}


class _Reset(PullAnswer):
    """An operator has set the position."""

    __slots__ = ()


def _answer(call: RemotingCall, header: PullHeader, pulled: PullAnswer, advice: int) -> Command:
    fields = {
        "suggestWhichBrokerId": str(advice),
        "nextBeginOffset": str(pulled.next_offset),
        "minOffset": str(pulled.min_offset),
        "maxOffset": str(pulled.max_offset),
    }
    code = _code(pulled, header.offset)
    remark = "OFFSET_RESET" if isinstance(pulled, _Reset) else _REMARKS[pulled.status]
    return call.command.answer(code, fields, pulled.records, remark)


def _code(pulled: PullAnswer, asked: int) -> ResponseCode:
    """RocketMQ: ``PullMessageProcessor.composeResponseHeader``."""
    status = pulled.status
    if status is PullStatus.FOUND:
        return ResponseCode.SUCCESS
    if status in (PullStatus.NO_MATCHED_MESSAGE, PullStatus.MESSAGE_WAS_REMOVING):
        return ResponseCode.PULL_RETRY_IMMEDIATELY
    if status in (PullStatus.OFFSET_OVERFLOW_ONE, PullStatus.OFFSET_FOUND_NULL, PullStatus.NO_NEW_MESSAGE):
        return ResponseCode.PULL_NOT_FOUND
    if status in (PullStatus.NO_MESSAGE_IN_QUEUE, PullStatus.NO_MATCHED_LOGIC_QUEUE) and pulled.next_offset == asked:
        return ResponseCode.PULL_NOT_FOUND
    return ResponseCode.PULL_OFFSET_MOVED
