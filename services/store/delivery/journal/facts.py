"""What is remembered of deliveries: values, each about one group in one queue, or about what waits for its time.

A fact is absolute: it says what is so, not what changed, so that it may be applied twice. Facts are written to the
journal in the order in which they came to be (`journal`), and applied to the state by one function, live as at replay.
Times are milliseconds since the Unix epoch by the delivery clock (`clock`).
"""

from typing import NamedTuple


class Place(NamedTuple):
    """A queue as a group consumes it. Messages of the group's retry topic have a place of their own."""

    group: str
    topic: str
    queue: int


class Given(NamedTuple):
    """Messages were given out for the first time: so many `messages` of them from `first` on, due again at `due`."""

    place: Place
    first: int
    messages: int
    due: int


class GivenAgain(NamedTuple):
    """A message was given out for the `number`-th time (2 and more), or its invisible time was changed."""

    place: Place
    offset: int
    number: int
    due: int


class HeldBy(NamedTuple):
    """A client holds so many `messages` from `first` on with renewal; they are due again at `due` unless renewed.

    `since`: when the client got them. What is given again, or has its invisible time changed, is held so no more.
    """

    place: Place
    first: int
    messages: int
    due: int
    client_id: str
    since: int


class Dealt(NamedTuple):
    """Messages are dealt with: acknowledged, passed by a filter, gone, or copied elsewhere.

    `copy`: log offset of the copy that stands for it (dead letter, retry), or -1. Replay drops the fact where that copy
    cannot be read.
    """

    place: Place
    first: int
    messages: int = 1
    copy: int = -1


class Moved(NamedTuple):
    """The cursor stands at `cursor` now, whatever was before: a commit, or a reset where `resets` is greater.

    Of two facts the one with more resets is right. With the same number of resets the cursor never goes back.
    """

    place: Place
    cursor: int
    resets: int


class Forgotten(NamedTuple):
    """The group, or the topic, was deleted: the place is none any more."""

    place: Place


class LevelDone(NamedTuple):
    """Of a delay level's queue of SCHEDULE_TOPIC_XXXX all below `offset` is delivered; `copy` as in `Dealt`."""

    level: int
    offset: int
    copy: int = -1


class TimersDone(NamedTuple):
    """Of the timers' topic, what is indexed below `indexed` with (due, offset) up to (`due`, `offset`) is delivered."""

    indexed: int
    due: int
    offset: int
    copy: int = -1


class HeldRun(NamedTuple):
    """In a snapshot: so many messages from `first` on that a client holds with renewal, as in `HeldBy`."""

    first: int
    messages: int
    client_id: str
    since: int


class Snapshot(NamedTuple):
    """All of one place: what `progress.QueueProgress` holds.

    `entries`: (offset, number, due, start) of each message that is given out or waits to be again, in order of offsets.
    `start`: the start number of the store that has given it out last; 0: not known.
    `more`: pieces of the same snapshot follow in later records; they are added to this one.
    `held`: which of the entries are held with renewal, in order of offsets.
    """

    place: Place
    cursor: int
    given: int
    resets: int
    entries: tuple[tuple[int, int, int, int], ...]
    more: bool = False
    held: tuple[HeldRun, ...] = ()


Fact = Given | GivenAgain | HeldBy | Dealt | Moved | Forgotten | LevelDone | TimersDone | Snapshot
