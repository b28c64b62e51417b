"""The ledger against a model of twenty lines, by Hypothesis; and after each step, what a replay makes of its facts."""

from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from tandemmq.store.delivery.journal.facts import Dealt, Fact, Forgotten, Given, GivenAgain, HeldBy, Moved, Place
from tandemmq.store.delivery.ledger.ledger import Ledger
from tests.unit.delivery.delivery_kit import state

PLACES = [Place("g", "t", 0), Place("g", "t", 1), Place("h", "t", 0)]
OFFSETS = st.integers(0, 60)
WHICH = st.sampled_from(PLACES)


class Model:
    """One place: each offset that was looked at is dealt with, or has a number and a due time."""

    def __init__(self, cursor: int) -> None:
        self.floor, self.resets = cursor, 0
        self.looked: dict[int, tuple[int, int] | None] = {}  # None: dealt with
        self.held: dict[int, tuple[str, int]] = {}  # by offset: client, since when

    def look(self, end: int) -> None:
        for at in range(self.floor + len(self.looked), end):
            self.looked[at] = (0, 0)

    def give(self, first: int, messages: int, due: int) -> None:
        begin = self.floor + len(self.looked)
        self.look(first + messages)
        self.looked.update(dict.fromkeys(range(max(first, begin), first + messages), (1, due)))

    def deal(self, first: int, messages: int) -> None:
        self.look(first + messages)
        self.looked.update({at: None for at in range(first, first + messages) if at >= self.floor})
        self.held = {at: one for at, one in self.held.items() if self.looked[at] is not None}

    @property
    def open(self) -> dict[int, tuple[int, int]]:
        return {at: entry for at, entry in self.looked.items() if entry is not None}

    @property
    def given(self) -> int:
        return self.floor + len(self.looked)


class LedgerMachine(RuleBasedStateMachine):
    """Facts come in any order; time passes."""

    def __init__(self) -> None:
        super().__init__()
        self.ledger = Ledger()
        self.models: dict[Place, Model] = {}
        self.facts: list[Fact] = []
        self.put_off_now: set[tuple[Place, int]] = set()
        self.now = 1_000

    def note(self, fact: Fact) -> None:
        self.ledger.apply(fact)
        self.facts.append(fact)

    @rule(place=WHICH, cursor=OFFSETS)
    def commit(self, place: Place, cursor: int) -> None:
        model = self.models.get(place)
        self.note(Moved(place, cursor, 0 if model is None else model.resets))
        if model is None:
            self.models[place] = Model(cursor)
        elif cursor > model.floor:
            model.deal(model.floor, cursor - model.floor)

    @rule(place=WHICH, cursor=OFFSETS)
    def reset(self, place: Place, cursor: int) -> None:
        if (model := self.models.get(place)) is not None:
            self.note(Moved(place, cursor, model.resets + 1))
            self.models[place] = Model(cursor)
            self.put_off_now = {one for one in self.put_off_now if one[0] != place}
            self.models[place].resets = model.resets + 1

    @rule(place=WHICH, skip=st.integers(0, 3), messages=st.integers(1, 8), wait=st.integers(0, 50))
    def give(self, place: Place, skip: int, messages: int, wait: int) -> None:
        if (model := self.models.get(place)) is not None:
            first = model.given + skip
            self.note(Given(place, first, messages, self.now + wait))
            model.give(first, messages, self.now + wait)
        else:
            self.ledger.apply(Given(place, 3, 2, self.now))  # of a place that never was: nothing

    @rule(place=WHICH, pick=st.integers(0, 100), wait=st.integers(0, 50), number=st.integers(0, 9))
    def give_again(self, place: Place, pick: int, wait: int, number: int) -> None:
        model = self.models.get(place)
        if model is not None and model.open:
            offset = sorted(model.open)[pick % len(model.open)]
            self.note(GivenAgain(place, offset, number, self.now + wait))
            self.put_off_now.discard((place, offset))
            model.looked[offset] = (number, self.now + wait)
            model.held.pop(offset, None)

    @rule(
        place=WHICH, pick=st.integers(0, 100), messages=st.integers(1, 8), wait=st.integers(0, 50),
        client=st.sampled_from(("one", "two")),
    )  # fmt: skip
    def hold(self, place: Place, pick: int, messages: int, wait: int, client: str) -> None:
        model = self.models.get(place)
        if model is not None and model.open:
            first = sorted(model.open)[pick % len(model.open)]
            self.note(HeldBy(place, first, messages, self.now + wait, client, self.now))
            for at in range(first, first + messages):
                if (entry := model.looked.get(at)) is not None:
                    if entry[1] != self.now + wait:
                        self.put_off_now.discard((place, at))
                    model.looked[at] = (entry[0], self.now + wait)
                    model.held[at] = (client, self.now)

    @rule(place=WHICH, pick=st.integers(0, 100), wait=st.integers(0, 50))
    def put_off(self, place: Place, pick: int, wait: int) -> None:
        model = self.models.get(place)
        if model is not None and model.open:
            offset = sorted(model.open)[pick % len(model.open)]
            entry = (model.open[offset][0], self.now + wait)
            self.note(GivenAgain(place, offset, *entry))
            self.ledger.put_off(place, offset)
            model.looked[offset] = entry
            model.held.pop(offset, None)
            self.put_off_now.add((place, offset))

    @rule(place=WHICH, back=st.integers(0, 20), messages=st.integers(1, 12))
    def deal(self, place: Place, back: int, messages: int) -> None:
        if (model := self.models.get(place)) is not None:
            first = max(model.given - back, 0)
            self.note(Dealt(place, first, messages))
            model.deal(first, messages)

    @rule(place=WHICH)
    def forget(self, place: Place) -> None:
        self.note(Forgotten(place))
        self.models.pop(place, None)
        self.put_off_now = {one for one in self.put_off_now if one[0] != place}

    @rule(place=WHICH, most=st.integers(1, 4))
    def snapshot(self, place: Place, most: int) -> None:
        if (progress := self.ledger.progress(place)) is not None:
            for fact in list(progress.snapshot(most)):
                self.note(fact)
            self.put_off_now = {one for one in self.put_off_now if one[0] != place}

    @rule(wait=st.integers(0, 40))
    def time_passes(self, wait: int) -> None:
        self.now += wait
        self.ledger.come_due(self.now)

    @invariant()
    def the_model_says_the_same(self) -> None:
        entries = 0
        assert {progress.place for progress in self.ledger.all()} == set(self.models)
        for place, model in self.models.items():
            progress = self.ledger.progress(place)
            assert progress is not None
            assert {at: (one.number, one.due) for at, one in progress.entries.items()} == model.open
            assert progress.holdings == model.held
            assert (progress.given, progress.resets) == (model.given, model.resets)
            assert progress.cursor == min(model.open, default=model.given)
            entries += len(model.open)
        assert self.ledger.entries == entries

    @invariant()
    def what_is_due_is_ready_and_nothing_else(self) -> None:
        self.ledger.come_due(self.now)
        ready = 0
        for place, model in self.models.items():
            due = {at for at, (_, due) in model.open.items() if due <= self.now}
            assert set(self.ledger.ready(place)) == due
            assert self.ledger.in_flight(place) == len(model.open) - len(due)
            put_off = {at for at in model.open if at not in due and (place, at) in self.put_off_now}
            assert set(self.ledger.put_off_at(place)) == put_off
            self.put_off_now -= {(place, at) for at in model.looked if at not in put_off}
            ready += len(due)
        assert self.ledger.ready_entries == ready
        waits = [due for model in self.models.values() for _, due in model.open.values() if due > self.now]
        found = self.ledger.next_due()
        assert not waits or (found is not None and found <= min(waits))

    @invariant()
    def a_replay_comes_to_the_same(self) -> None:
        replayed = Ledger()
        for fact in self.facts:
            replayed.apply(fact)
        assert state(replayed) == state(self.ledger)
        replayed.come_due(self.now)
        assert {place: set(replayed.ready(place)) for place in self.models} == {
            place: {*self.ledger.ready(place)} for place in self.models
        }
        found, waits = (
            replayed.next_due(),
            [due for model in self.models.values() for _, due in model.open.values() if due > self.now],
        )
        assert found == min(waits, default=None)


LedgerMachine.TestCase.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)
test_the_ledger_is_as_the_model: Any = LedgerMachine.TestCase


def test_half_a_snapshot_says_nothing() -> None:
    place, ledger = PLACES[0], Ledger()
    for fact in (Moved(place, 0, 0), Given(place, 0, 10, 5)):
        ledger.apply(fact)
    progress = ledger.progress(place)
    assert progress is not None
    first, *_ = list(progress.snapshot(4))
    before = state(ledger)
    ledger.apply(first)
    assert state(ledger) == before
    ledger.apply(Dealt(place, 0))
    assert len(progress.entries) == 9


@pytest.mark.slow
def test_dead_items_of_the_heap_go_when_they_are_half_of_it() -> None:
    place, ledger = PLACES[0], Ledger()
    ledger.apply(Moved(place, 0, 0))
    ledger.come_due(0)
    for at in range(0, 200_000, 10):
        ledger.apply(Given(place, at, 10, 10_000 + at))
        ledger.apply(Dealt(place, at, 10))
    assert len(ledger._heap) < 2_000
    ledger.apply(Given(place, 200_000, 10, 10_000))
    ledger.come_due(1_000_000)
    assert ledger.ready_count(place) == 10
