"""The lines of all ordered groups, made of the ledger's open entries when they are first needed."""

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import NamedTuple

from tandemmq.common.slices import Slices
from tandemmq.common.timers import Timers
from tandemmq.store.delivery.journal.facts import Dealt, Place
from tandemmq.store.delivery.ledger.ledger import Ledger
from tandemmq.store.delivery.ledger.order import MessageGroups, Spot, line_key
from tandemmq.store.delivery.receiving.place_reader import Absence, PlaceReader
from tandemmq.store.format import properties
from tandemmq.store.format.record import Record, decode_record

GroupTopic = tuple[str, str]
"""A group, and a topic."""


class _Loading(NamedTuple):
    """Lines in the making, and the open messages that are to come."""

    lines: MessageGroups
    left: Iterator[tuple[Place, int]]


class OrderLines:
    """By group and topic: who waits for whom."""

    def __init__(self, ledger: Ledger, reader: PlaceReader, timers: Timers) -> None:
        self._ledger = ledger
        self._reader = reader
        self._timers = timers
        self._groups: dict[GroupTopic, MessageGroups] = {}
        self._loading: dict[GroupTopic, _Loading] = {}

    def known(self, group: str, topic: str) -> bool:
        """Whether all that is open there has its line; else nobody knows who waits for whom."""
        return (group, topic) in self._groups

    async def load(self, topics: Iterable[GroupTopic]) -> bool:
        """Make the lines that are not `known`, in slices; whether there were any.

        They are known then, but where some message cannot be read now, because its queue is being put right.
        """
        unknown = [one for one in topics if one not in self._groups]
        slices = Slices(self._timers)
        for one in unknown:
            while one not in self._groups and self._load_next(one):
                await slices.pause()
        return bool(unknown)

    def _load_next(self, topic: GroupTopic) -> bool:
        """Put one more open message into its line; one that has gone has none. False: it cannot be read now."""
        loading = self._loading.get(topic)
        if loading is None:
            loading = self._loading[topic] = _Loading(MessageGroups(), self._open(topic))
        for place, offset in loading.left:
            data = self._reader.one(place, offset)
            if data is Absence.LATER:
                del self._loading[topic]
                return False
            if isinstance(data, bytes):
                message_group = decode_record(data, verify=False).properties.get(properties.SHARDING_KEY)
                loading.lines.add((place.queue, offset), line_key(place, message_group))
            return True
        self._groups[topic] = self._loading.pop(topic).lines
        return True

    def _open(self, topic: GroupTopic) -> Iterator[tuple[Place, int]]:
        """What is open, queue by queue; what is dealt with meanwhile is left out."""
        for progress in self._ledger.places(*topic):
            for offset in sorted(progress.entries):
                now = self._ledger.progress(progress.place)
                if now is not None and offset in now.entries:
                    yield progress.place, offset

    def take(self, place: Place, offset: int, record: Record, chosen: Collection[Spot]) -> bool:
        """Whether a message may be given out now, with those that are chosen for the same answer; else it is held.

        Its lines must be `known`.
        """
        lines = self._groups[place.group, place.topic]
        spot = place.queue, offset
        lines.add(spot, line_key(place, record.properties.get(properties.SHARDING_KEY)))
        if lines.may_go(spot, chosen):
            following = lines.let_follow(spot)
            if following is not None:
                self._ledger.put_back(Place(place.group, place.topic, following[0]), following[1])
            return True
        lines.hold(spot)
        return False

    def held(self, place: Place, begin: int, end: int) -> list[int]:
        """Offsets of a range that are held."""
        lines = self._groups.get((place.group, place.topic))
        if lines is None:
            return []
        held = lines.held.get(place.queue, ())
        return [offset for offset in range(begin, end) if offset in held] if held else []

    def acknowledge(self, done: Mapping[Place, set[int]]) -> dict[Place, set[int]]:
        """Messages of an ordered group are acknowledged. Gives what is dealt with by that: none before its turn."""
        dealt: dict[Place, set[int]] = {}
        for place, offsets in done.items():
            if self.known(place.group, place.topic):
                lines = self._groups[place.group, place.topic]
                settled = lines.acknowledge((place.queue, offset) for offset in sorted(offsets))
                for behind, offset in _placed(place, settled):
                    dealt.setdefault(behind, set()).add(offset)
            else:  # nobody knows whose turn it is
                dealt.setdefault(place, set()).update(offsets)
        return dealt

    def reopen(self, place: Place, offset: int) -> Iterable[tuple[Place, int]]:
        """A message is given out again. Gives those that were acknowledged out of turn: they come again after it."""
        lines = self._groups.get((place.group, place.topic))
        return () if lines is None else _placed(place, lines.reopen((place.queue, offset)))

    def dealt(self, facts: Iterable[Dealt]) -> dict[Place, set[int]]:
        """Messages are dealt with: those that come next in their lines are ready.

        Gives those that come next and were acknowledged before: they are to be dealt with too.
        """
        if not self._groups and not self._loading:
            return {}
        topics: dict[tuple[str, str], list[Dealt]] = {}
        for fact in facts:
            topic = fact.place.group, fact.place.topic
            if topic in self._groups:
                topics.setdefault(topic, []).append(fact)
            elif topic in self._loading:
                self._loading[topic].lines.dealt(_spots(fact))
        found: dict[Place, set[int]] = {}
        for topic, some in topics.items():
            freed, settled = self._groups[topic].dealt(spot for one in some for spot in _spots(one))
            for place, offset in _placed(some[0].place, freed):
                self._ledger.put_back(place, offset)
            for place, offset in _placed(some[0].place, settled):
                found.setdefault(place, set()).add(offset)
        return found

    def forget(self, group: str, topic: str) -> None:
        """The cursor was set: the lines are made anew when they are needed."""
        self._loading.pop((group, topic), None)
        lines = self._groups.pop((group, topic), None)
        if lines is None:
            return
        for queue, offsets in list(lines.held.items()):
            for offset in offsets:
                self._ledger.put_back(Place(group, topic, queue), offset)


def _spots(fact: Dealt) -> Iterator[Spot]:
    return ((fact.place.queue, offset) for offset in range(fact.first, fact.first + fact.messages))


def _placed(place: Place, spots: Iterable[Spot]) -> list[tuple[Place, int]]:
    """Spots of the topic of a place."""
    return [(Place(place.group, place.topic, queue), offset) for queue, offset in spots]
