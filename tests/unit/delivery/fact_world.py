"""A store in memory around delivery's own state: a log that is cut short, replayed and shortened, and who saw what.

Real are the ledger, the base, images, handles and the timers' window. The log is a list. `Rules` are the steps whose
order matters; a test replaces one to see that the history then goes wrong.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple, cast

from tandemmq.store.delivery.delays.timer_entry import TimerEntry
from tandemmq.store.delivery.delays.timer_index import TimerIndex
from tandemmq.store.delivery.delays.timer_window import TimerWindow
from tandemmq.store.delivery.errors import HandleExpired
from tandemmq.store.delivery.journal.base import Base
from tandemmq.store.delivery.journal.facts import (
    Dealt,
    Fact,
    Given,
    GivenAgain,
    HeldBy,
    Moved,
    Place,
    Snapshot,
    TimersDone,
)
from tandemmq.store.delivery.journal.images import Cursor, cursors_of_image
from tandemmq.store.delivery.journal.journal_format import Position
from tandemmq.store.delivery.ledger.ledger import Ledger
from tandemmq.store.delivery.receiving.acknowledging import Acknowledger
from tandemmq.store.delivery.receiving.handles import ReceiptHandle, Shown, decode_handle, encode_handle
from tandemmq.store.log.edges.disk import LocalDisk

PLACE = Place("g", "t", 0)
FILE_SIZE = 1 << 30
FAR = 1 << 40
PRECISION_MS = 1_000

Step = tuple[str, int]


class Logged(NamedTuple):
    """A record of the log. Its offset is its index."""

    kind: str
    """message, letter, timer, facts."""
    what: Any


def _is_of_timers(one: Logged) -> bool:
    return one.kind == "facts" and isinstance(one.what[0][0], TimersDone)


class Image(NamedTuple):
    """consumerOffset.json: a cursor, and how many journal records it reflects."""

    cursor: int
    resets: int
    mark: int


@dataclass(frozen=True)
class Rules:
    """The steps whose order matters."""

    bury: Callable[["World", int, str], None]
    image: Callable[["World"], Image | None]
    base: Callable[["World"], int]
    timers_done: Callable[[TimersDone], TimersDone]
    handle: Callable[[ReceiptHandle, int], ReceiptHandle]
    tell: Callable[["World"], list[Fact]]


def copy_then_fact(world: "World", offset: int, value: str) -> None:
    """The dead letter, then the fact that names it."""
    copy = world.append("letter", value)
    world.note(Dealt(PLACE, offset, 1, copy))


def image_of_what_is_safe(world: "World") -> Image | None:
    """The cursor as the log says it up to where nothing undoes it."""
    ledger, _ = world.replayed(world.safe)
    progress = ledger.progress(PLACE)
    mark = sum(one.kind == "facts" for one in world.log[: world.safe])
    return None if progress is None else Image(progress.cursor, progress.resets, mark)


def base_of_the_units(world: "World") -> int:
    """The oldest record from which on each unit is told whole."""
    return world.base.position(Position(0, len(world.log))).log_offset


def oldest_told_whole(world: "World") -> list[Fact]:
    """The oldest units, whole."""
    return world.base.oldest(100, world.ledger)


RULES = Rules(
    copy_then_fact,
    image_of_what_is_safe,
    base_of_the_units,
    lambda done: done,
    lambda handle, _: handle,
    oldest_told_whole,
)


@dataclass
class Seen:
    """The history, for the verdict."""

    held: list[tuple[str, int, str]] = field(default_factory=list)
    """Handles that consumers have: of which value, in which generation (resets that were asked for)."""
    done: dict[str, int] = field(default_factory=dict)
    """Values that their consumers have dealt with, and in which generation."""
    asked: dict[str, int] = field(default_factory=dict)
    """Those whose acknowledgement is in the log, and not answered yet."""
    answered: dict[str, int] = field(default_factory=dict)
    """Those whose acknowledgement was answered."""
    twice: set[str] = field(default_factory=set)
    """Timed messages that may come twice: the crash left the copy, and not the fact that it was made."""
    wrong: list[str] = field(default_factory=list)


class World:
    """The store, its consumers, and time."""

    def __init__(self, rules: Rules = RULES) -> None:
        self.rules = rules
        self.log: list[Logged] = []
        self.safe = 0
        """So many records survive whatever comes."""
        self.kept_from = 0
        """Facts before this record are gone with their file."""
        self.image: Image | None = None
        self.now = 1_000
        self.start = 1
        self.generation = 0
        self.seen = Seen()
        self._number = 0
        self._rebuild()

    # -- the log ----------------------------------------------------------------------------------------------------

    def append(self, kind: str, what: Any) -> int:
        """Append a record; gives its offset."""
        self.log.append(Logged(kind, what))
        return len(self.log) - 1

    def note(self, *facts: Fact) -> None:
        """Facts become true, and a record that names the base."""
        for fact in facts:
            self.ledger.apply(fact)
        at = self.append("facts", (facts, min(base_of_the_units(self), len(self.log)), self.start))
        self.base.wrote(facts, Position(at, at), 100)

    def messages(self, end: int | None = None) -> list[str]:
        """The values in the topic's queue."""
        return [one.what for one in self.log[:end] if one.kind == "message"]

    def replayed(self, end: int) -> tuple[Ledger, Base]:
        """What the log says up to a record: from the base on that the newest facts name, if they are still there."""
        ledger, base = Ledger(), Base(FILE_SIZE)
        log = self.log[:end]
        newest = next((one.what[1] for one in reversed(log) if one.kind == "facts"), 0)
        for at in range(max(newest, self.kept_from), end):
            if log[at].kind == "facts":
                facts = [fact for fact in log[at].what[0] if getattr(fact, "copy", -1) < end]
                ledger.start = log[at].what[2]
                for fact in facts:
                    ledger.apply(fact)
                base.wrote(facts, Position(at, at), 100)
        return ledger, base

    def _rebuild(self) -> None:
        self.ledger, self.base = self.replayed(len(self.log))
        self.ledger.start = self.start
        self.begun = False
        self.indexed = 0
        self.window = TimerWindow(TimerIndex(Path("nowhere"), LocalDisk()), PRECISION_MS, self.ledger.timers)
        self.window.load(FAR)
        self.timers_done = (
            (0, -1) if self.ledger.timers is None else (self.ledger.timers.due, self.ledger.timers.offset)
        )

    def begin(self) -> None:
        """Before the first receive: what the image says, then places that nobody has told of."""
        if self.begun:
            return
        self.begun, end = True, len(self.messages())
        if self.image is not None:
            cursor, resets, mark = self.image
            records = sum(one.kind == "facts" for one in self.log)
            if mark > records or self.ledger.progress(PLACE) is None:
                image = [Cursor(PLACE, cursor, resets)]
                if facts := cursors_of_image(image, self.ledger, lambda _: end, backwards=False):
                    self.note(*facts)
        if self.ledger.progress(PLACE) is None:
            self.note(Moved(PLACE, 0, 0))

    # -- steps ------------------------------------------------------------------------------------------------------

    def step(self, what: str, number: int) -> None:
        """One step; `number` says which or how much."""
        if what not in ("send", "crash", "image", "later", "timer", "index"):
            self.begin()
        getattr(self, f"do_{what}")(number)

    def do_send(self, _: int) -> None:
        self._number += 1
        self.append("message", f"v{self._number}")

    def do_sync(self, _: int) -> None:
        """All that was asked for so far is answered."""
        self.safe = len(self.log)
        self.seen.answered |= self.seen.asked
        self.seen.asked.clear()

    def do_later(self, number: int) -> None:
        self.now += number * 400

    def do_give(self, number: int) -> None:
        progress = self.ledger.progress(PLACE)
        assert progress is not None
        values, due = self.messages(), self.now + 1_000
        self.ledger.come_due(self.now)
        for offset in self.ledger.ready(PLACE, number + 1):
            delivery = progress.entries[offset].number + 1
            self.note(GivenAgain(PLACE, offset, delivery, due))
            self._hand_out(values[offset], offset, delivery)
        first, count = progress.given, min(len(values) - progress.given, number + 1)
        if count > 0:
            self.note(Given(PLACE, first, count, due))
            for offset in range(first, first + count):
                self._hand_out(values[offset], offset, 1)

    def _hand_out(self, value: str, offset: int, delivery: int) -> None:
        progress = self.ledger.progress(PLACE)
        assert progress is not None
        if self.seen.answered.get(value) == self.generation and value not in self.seen.twice:
            self.seen.wrong.append(f"{value} again")
        handle = ReceiptHandle(PLACE, offset, delivery, progress.resets, self.start)
        self.seen.held.append((value, self.generation, encode_handle(handle, Shown.AS_ASKED)))

    def _take_back(self, number: int) -> tuple[str, int, ReceiptHandle] | None:
        """A handle that somebody holds, if it counts."""
        if not self.seen.held:
            return None
        value, generation, text = self.seen.held.pop(number % len(self.seen.held))
        progress = self.ledger.progress(PLACE)
        assert progress is not None
        handle = self.rules.handle(decode_handle(text, "g", "t"), progress.resets)
        nothing = cast(Any, None)
        journal = cast(Any, SimpleNamespace(ledger=self.ledger))
        acknowledger = Acknowledger(
            journal, nothing, nothing, nothing, nothing, nothing, nothing, nothing, nothing, dealt=nothing
        )
        try:
            return (value, generation, handle) if acknowledger.open_entry(handle) is not None else None
        except HandleExpired:
            return None

    def do_ack(self, number: int) -> None:
        if (taken := self._take_back(number)) is not None:
            value, generation, handle = taken
            self.note(Dealt(PLACE, handle.offset))
            self.seen.done[value] = self.seen.asked[value] = max(self.seen.done.get(value, 0), generation)

    def do_hold(self, number: int) -> None:
        """A message that somebody has is renewed, for one of two clients."""
        if (taken := self._take_back(number)) is not None:
            offset = taken[2].offset
            self.note(HeldBy(PLACE, offset, 1, self.now + 1_000, f"client-{number % 2}", self.now))
            self.seen.held.append((taken[0], taken[1], encode_handle(taken[2], Shown.AS_ASKED)))

    def do_bury(self, number: int) -> None:
        if (taken := self._take_back(number)) is not None:
            value, _, handle = taken
            self.rules.bury(self, handle.offset, value)

    def do_reset(self, _: int) -> None:
        """An operator has the group begin again; it is answered."""
        progress = self.ledger.progress(PLACE)
        assert progress is not None
        self.note(Moved(PLACE, 0, progress.resets + 1))
        self.generation += 1
        self.do_sync(0)

    def do_image(self, _: int) -> None:
        self.image = self.rules.image(self) or self.image

    def do_tell(self, _: int) -> None:
        """The oldest units are told whole."""
        self.note(*self.rules.tell(self))

    def do_retire(self, _: int) -> None:
        """Files below the base are removed; a replica may begin there."""
        self.do_sync(0)
        self.kept_from = max(self.kept_from, self.rules.base(self))

    def do_crash(self, lost: int) -> None:
        """The last records are gone, as far as nobody was told of them; another start."""
        del self.log[max(len(self.log) - lost, self.safe) :]
        self.start += 1
        self._rebuild()
        self._check_who_holds()
        self.seen.asked.clear()
        known = set(self.messages())
        self.seen.done = {value: at for value, at in self.seen.done.items() if value in known}
        noted = max((one.what[0][0].copy for one in self.log if _is_of_timers(one)), default=-1)
        self.seen.twice |= {one.what for one in self.log[noted + 1 :] if one.kind == "message" and one.what[0] == "t"}

    def _check_who_holds(self) -> None:
        """What is known from the base on is what all facts since the beginning say; snapshots add nothing to them."""
        whole = Ledger()
        for one in self.log:
            for fact in one.what[0] if one.kind == "facts" else ():
                if not isinstance(fact, Snapshot) and getattr(fact, "copy", -1) < len(self.log):
                    whole.apply(fact)
        known, expected = self.ledger.progress(PLACE), whole.progress(PLACE)
        if known is not None and expected is not None and known.holdings != expected.holdings:
            self.seen.wrong.append("who holds is not known")

    # -- timers -----------------------------------------------------------------------------------------------------

    def do_timer(self, wait: int) -> None:
        self._number += 1
        self.append("timer", (self.now + wait * 200, f"t{self._number}"))

    def timers(self) -> list[TimerEntry]:
        found = [(at, one.what) for at, one in enumerate(self.log) if one.kind == "timer"]
        return [TimerEntry(when, offset, at, 0) for offset, (at, (when, _)) in enumerate(found)]

    def do_index(self, number: int) -> None:
        """So many timers more are in the index."""
        fresh = self.timers()[self.indexed : self.indexed + number + 1]
        self.indexed += len(fresh)
        self.window.add(fresh)

    def do_deliver(self, _: int) -> None:
        """What is due by the index is copied, then noted."""
        copy = -1
        while (entry := self.window.first()) is not None and entry.when <= self.now:
            self.window.pop()
            copy = self.append("message", self.log[entry.physical].what[1])
            self.timers_done = max(self.timers_done, (entry.when, entry.offset))
        if copy >= 0:
            self.note(self.rules.timers_done(TimersDone(self.indexed, *self.timers_done, copy)))

    # -- verdict ----------------------------------------------------------------------------------------------------

    def verdict(self) -> list[str]:
        """Let all come to an end: what is wrong then, or was before."""
        self.begin()
        self.now += 1_000_000
        self.do_index(1_000)
        self.do_deliver(0)
        for _ in range(200):
            self.now += 2_000
            self.seen.held.clear()
            self.do_give(100)
            if not self.seen.held:
                break
            while self.seen.held:
                self.do_ack(0)
        letters = {one.what for one in self.log if one.kind == "letter"}
        timed = {one.what[1] for one in self.log if one.kind == "timer"}
        done = {value for value, generation in self.seen.done.items() if generation == self.generation}
        lost = {*self.messages(), *timed} - done - letters
        return [*self.seen.wrong, *(f"{value} lost" for value in sorted(lost))]


def played(steps: list[Step], **mutation: Any) -> list[str]:
    """What is wrong after steps, with other rules perhaps."""
    world = World(replace(RULES, **mutation))
    for what, number in steps:
        world.step(what, number)
    return world.verdict()
