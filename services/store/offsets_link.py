"""Keeps the metadata service's consumer offsets and delay offsets images of the store's journal, while it is a master.

It tells the metadata service where groups and delay levels stand as soon as that is durable. And it watches the table
of consumer offsets: what consumers commit there, resets by operators, and deleted groups become facts of the journal,
so that there is one position, whichever way a group consumes.
"""

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Callable
from typing import Any

import grpc

from tandemmq.common.calling.backoff import Backoff
from tandemmq.common.calling.client_channel import Dialer
from tandemmq.common.calling.followed_peer import FollowedPeer
from tandemmq.common.errors import TandemError
from tandemmq.common.log_output import get_log
from tandemmq.common.slices import Slices, each
from tandemmq.common.tasks import end_tasks
from tandemmq.common.timers import time_limit
from tandemmq.metadata.v1 import metadata_pb2 as pb
from tandemmq.metadata.v1 import metadata_pb2_grpc
from tandemmq.store.delivery.journal.facts import Fact, Forgotten, Moved, Place
from tandemmq.store.delivery.journal.images import Cursor, cursors_of_image
from tandemmq.store.delivery.journal.journal import Journal
from tandemmq.store.delivery.ledger.durable_cursors import CursorChanges, DurableCursors
from tandemmq.store.log.message_store import MessageStore
from tandemmq.store.metasync_link import PAUSES

log = get_log(__name__)

_TELL_SECONDS = 1.0
_CALL_SECONDS = 3.0
_REFUSED_TURNS = 30
"""What the metadata service does not know (a topic, a group) is told again after so many turns."""
_PATIENCE = 3
"""Attempts that fail before the log hears of it."""

_COMMITS = 250


class OffsetsLink:
    """Follows the metadata service at one address; a service of the master."""

    def __init__(
        self, address: str, dialer: Dialer, store: MessageStore, journal: Journal, cursors: DurableCursors
    ) -> None:
        self._address = address
        self._dialer = dialer
        self._store = store
        self._journal = journal
        self._cursors = cursors
        self._resets: dict[Place, int] = {}  # how often a cursor was reset, as the metadata service knows it
        self._refused: dict[Place, None] = {}
        self._turn = 0
        self._tasks: list[asyncio.Task[None]] = []
        self._watched = FollowedPeer("metadata service with offsets", address, patience=_PATIENCE)
        self._told = FollowedPeer("metadata service that is told offsets", address, patience=_PATIENCE)
        self._known = asyncio.Event()
        """The whole table has come: until then nobody knows what is a reset."""

    def start(self) -> None:
        """Begin, in the background."""
        self._resets.clear()
        self._refused.clear()
        self._known.clear()
        steps = ((self._watched, self._watch), (self._told, self._tell))
        self._tasks = [asyncio.create_task(self._follow(peer, step), name=peer.peer) for peer, step in steps]

    async def stop(self) -> None:
        """End, and tell once more what is durable, if the metadata service answers."""
        tasks, self._tasks = self._tasks, []
        await end_tasks(self._store.timers, *tasks)
        if not self._watched.there or not self._known.is_set():
            return
        with contextlib.suppress(grpc.aio.AioRpcError, TimeoutError):
            async with time_limit(self._store.timers, _CALL_SECONDS), self._dialer.channel(self._address) as opened:
                await self._tell_changes(metadata_pb2_grpc.MetadataStub(opened))

    async def _follow(self, peer: FollowedPeer, step: Callable[[Any], AsyncGenerator[None, None]]) -> None:
        attempts = self._dialer.attempts(self._address, lambda opened: step(metadata_pb2_grpc.MetadataStub(opened)))
        await peer.follow(attempts, Backoff(*PAUSES), self._store.timers.sleep)

    # -- from the metadata service ----------------------------------------------------------------------------------

    async def _watch(self, stub: Any) -> AsyncGenerator[None, None]:
        """Note what comes; each page can be taken by itself."""
        async for page in stub.Watch(pb.WatchRequest(tables=[pb.CONSUMER_OFFSETS])):
            await self._take(page)
            self._watched.came()
            yield

    async def _take(self, page: pb.TablePage) -> None:
        if not self._journal.open:
            return
        slices = Slices(self._store.timers)
        try:
            await each(self._take_offsets, page.consumer_offsets, slices)
            await each(lambda key: self._note(self._forgotten(key)), page.deleted, slices)
        except TandemError as error:
            log.warning("offsets of the metadata service are not noted", reason=error.message)
            return
        if page.whole and page.last:  # it may have lost what it was told last
            ledger = self._journal.ledger
            await each(lambda one: ledger.moved_again((one.place,)), list(ledger.all()), slices)
            self._known.set()

    def _take_offsets(self, one: pb.GroupOffsets) -> None:
        """Note how far a group is in a topic. Raises NotDelivering."""
        cursors = [
            Cursor(Place(one.group, one.topic, queue), offset, one.resets.get(queue, 0))
            for queue, offset in one.offsets.items()
            if one.group and offset >= 0 and queue >= 0
        ]
        for place, _, resets in cursors:
            if resets:
                self._resets[place] = resets
        facts = cursors_of_image(cursors, self._journal.ledger, self._end, backwards=False)
        moved = [fact for fact in facts if isinstance(fact, Moved)]
        reset = {fact.place for fact in moved if self._is_reset(fact)}
        self._note(facts)
        for hears in self._journal.moved_outside if moved else ():
            hears([fact.place for fact in moved], reset)

    def _is_reset(self, fact: Moved) -> bool:
        """Whether somebody has set the place's offset back or ahead; else members of the group commit."""
        known = self._journal.ledger.progress(fact.place)
        return fact.resets > (0 if known is None else known.resets)

    def _note(self, facts: list[Fact]) -> None:
        if facts:
            self._journal.note(*facts)

    def _forgotten(self, key: str) -> list[Fact]:
        topic, _, group = key.partition("@")
        places = [progress.place for progress in self._journal.ledger.places(group, topic)]
        for place in places:
            self._resets.pop(place, None)
        return [Forgotten(place) for place in places]

    def _end(self, place: Place) -> int | None:
        queue = self._store.queue(place.topic, place.queue)
        return None if queue is None else queue.max_offset

    # -- to the metadata service ------------------------------------------------------------------------------------

    async def _tell(self, stub: Any) -> AsyncGenerator[None, None]:
        """Tell what is durable, again and again."""
        while True:
            await self._known.wait()
            await self._store.timers.sleep(_TELL_SECONDS)
            self._turn += 1
            if self._turn % _REFUSED_TURNS == 0 and self._refused:
                refused, self._refused = self._refused, {}
                self._journal.ledger.moved_again(refused)
            await self._tell_changes(stub)
            if self._told.problem:
                self._told.came()
            yield

    async def _tell_changes(self, stub: Any) -> None:
        """Raises AioRpcError: they are told later."""
        changes = await self._cursors.take()
        if changes is None:
            return
        try:
            await self._tell_cursors(stub, changes)
            for group, topic in {(place.group, place.topic) for place in changes.gone}:
                if not self._journal.ledger.places(group, topic):
                    await stub.DeleteOffsets(pb.DeleteOffsetsRequest(group=group, topic=topic), timeout=_CALL_SECONDS)
            if changes.levels:
                levels = [pb.DelayOffset(level=level, offset=offset) for level, offset in changes.levels.items()]
                await stub.PutDelayOffsets(pb.PutDelayOffsetsRequest(offsets=levels), timeout=_CALL_SECONDS)
        except BaseException:
            self._cursors.put_back(changes)
            raise

    async def _tell_cursors(self, stub: Any, changes: CursorChanges) -> None:
        reset: list[Cursor] = []
        moved: list[Cursor] = []

        def part(one: Cursor) -> None:
            known = self._resets.get(one.place, 0)
            if one.resets >= known:
                (moved if one.resets == known else reset).append(one)

        await each(part, changes.cursors, Slices(self._store.timers))
        for cursors, is_reset in ((reset, True), (moved, False)):
            for at in range(0, len(cursors), _COMMITS):
                some = cursors[at : at + _COMMITS]
                before = [self._resets.get(one.place, 0) for one in some]
                request = pb.CommitOffsetsRequest(commits=[_commit(one, is_reset) for one in some], reset=is_reset)
                answer = await stub.CommitOffsets(request, timeout=_CALL_SECONDS)
                for one, known, result in zip(some, before, answer.results, strict=True):
                    if result.status in (pb.UNKNOWN_TOPIC, pb.UNKNOWN_GROUP):
                        self._refused[one.place] = None
                    elif is_reset:
                        self._resets[one.place] = max(self._resets.get(one.place, 0), known + 1)  # or it was watched
        again = [one.place for one in reset if one.resets > self._resets.get(one.place, 0)]
        self._journal.ledger.moved_again(place for place in again if place not in self._refused)


def _commit(cursor: Cursor, is_reset: bool) -> pb.OffsetCommit:
    place = cursor.place
    resets = None if is_reset else cursor.resets
    return pb.OffsetCommit(
        topic=place.topic, group=place.group, queue_id=place.queue, offset=cursor.offset, resets=resets
    )
