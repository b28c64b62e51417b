"""What was read ahead of a receive: given as it would be read now, or read anew."""

from collections.abc import Callable
from typing import Any, cast

import pytest

from tandemmq.store.delivery.journal.facts import Dealt, Given, Moved, Place
from tandemmq.store.delivery.ledger.progress import QueueProgress
from tandemmq.store.delivery.receiving.place_reader import Stretch
from tandemmq.store.delivery.receiving.read_ahead import ReadAhead

PLACE = Place("group", "topic", 0)


class Reader:
    """A queue of 100 messages of ten bytes, which says how often it was read."""

    log_begin = 0

    def __init__(self) -> None:
        self.reads = 0
        self.version = b"a"

    def begin(self, place: Place) -> int:
        return 0

    def stretch(self, place: Place, offset: int, most: int, most_bytes: int, tags: object) -> Stretch:
        self.reads += 1
        end = min(offset + most, offset + max(most_bytes // 10, 1), 100)
        return Stretch(offset, end, [(at, self.version * 10) for at in range(offset, end)])


class Ahead:
    """Reading ahead for one group."""

    def __init__(self) -> None:
        self.reader = Reader()
        self.ahead = ReadAhead(cast(Any, self.reader))
        self.progress = QueueProgress(PLACE)

    def take(self, most: int, most_bytes: int = 1_000) -> list[tuple[int, bytes]]:
        found = self.ahead.stretch(self.progress, most, most_bytes, None)
        assert (found.begin, found.end) == (self.progress.given, self.progress.given + len(found.records))
        self.progress.give(Given(PLACE, found.begin, len(found.records), 1))
        return found.records


def test_small_receives_share_a_read_and_miss_nothing() -> None:
    at = Ahead()
    taken = [offset for _ in range(40) for offset, _ in at.take(3, 25)]
    assert taken == list(range(len(taken)))
    assert len(taken) >= 70
    assert at.reader.reads == 3


def test_what_has_all_been_given_out_takes_no_memory() -> None:
    at = Ahead()
    for _ in range(4):
        assert len(at.take(8)) == 8
    assert at.reader.reads == 1
    assert not at.ahead._read, "a record may have some megabytes, and there are many places"


def reset(at: Ahead) -> None:
    at.progress.move(Moved(PLACE, 1, 1))


def commit(at: Ahead) -> None:
    at.progress.move(Moved(PLACE, 20, 0))


def dealt(at: Ahead) -> None:
    at.progress.deal(Dealt(PLACE, 2, 3))


def file_gone(at: Ahead) -> None:
    at.reader.log_begin = 1


def made_anew(at: Ahead) -> None:
    at.progress = QueueProgress(PLACE, at.progress.given)


@pytest.mark.parametrize("change", [reset, commit, dealt, file_gone, made_anew])
def test_where_something_has_changed_it_is_read_anew(change: Callable[[Ahead], None]) -> None:
    at = Ahead()
    assert [offset for offset, _ in at.take(2)] == [0, 1]
    at.reader.version = b"b"
    change(at)
    first = at.progress.given
    assert at.take(2) == [(first, b"b" * 10), (first + 1, b"b" * 10)]
