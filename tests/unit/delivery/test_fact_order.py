"""The order of copies, facts, images and the base: as it is nothing is lost or repeated, and each other order does it.

A model that would not notice the wrong order would show nothing.
"""

from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tandemmq.store.delivery.facts import Dealt, Fact, Snapshot, TimersDone
from tandemmq.store.delivery.handles import ReceiptHandle
from tests.unit.delivery.fact_world import FAR, PLACE, Image, Step, World, oldest_told_whole, played

KINDS = [
    "send", "send", "give", "give", "hold", "ack", "ack", "bury", "sync", "later", "reset", "image", "tell", "retire",
    "crash", "crash", "timer", "index", "deliver",
]  # fmt: skip
STEPS = st.lists(st.tuples(st.sampled_from(KINDS), st.integers(0, 4)), max_size=30)


@given(STEPS)
@settings(max_examples=400, deadline=None)
def test_nothing_is_lost_and_what_was_answered_never_comes_again(steps: list[Step]) -> None:
    assert played(steps) == []


@dataclass(frozen=True)
class Mutation:
    """Another order of steps, and a history that it spoils."""

    rules: dict[str, Any]
    steps: list[Step]


def fact_then_copy(world: World, offset: int, value: str) -> None:
    world.note(Dealt(PLACE, offset))  # it cannot name what is not there yet
    world.append("letter", value)


def image_of_all(world: World) -> Image | None:
    progress = world.ledger.progress(PLACE)
    mark = sum(one.kind == "facts" for one in world.log)
    return None if progress is None else Image(progress.cursor, progress.resets, mark)


def base_at_the_newest_record(world: World) -> int:
    return max(at for at, one in enumerate(world.log) if one.kind == "facts")


def done_whatever_is_indexed(done: TimersDone) -> TimersDone:
    return done._replace(indexed=FAR)


def handle_of_any_reset(handle: ReceiptHandle, resets: int) -> ReceiptHandle:
    return handle._replace(resets=resets)


def told_without_who_holds(world: World) -> list[Fact]:
    told = oldest_told_whole(world)
    return [fact._replace(held=()) if isinstance(fact, Snapshot) else fact for fact in told]


MUTATIONS = {
    "fact before copy": Mutation(
        {"bury": fact_then_copy}, [("send", 0), ("give", 0), ("bury", 0), ("crash", 1)]
    ),
    "image ahead of the journal": Mutation(
        {"image": image_of_all},
        [
            ("send", 0), ("sync", 0), ("send", 0), ("give", 4), ("ack", 0), ("ack", 0), ("image", 0), ("crash", 4),
            ("send", 0),
        ],
    ),
    "base beyond what a slave begins with": Mutation(
        {"base": base_at_the_newest_record},
        [("send", 0), ("give", 0), ("ack", 0), ("send", 0), ("give", 0), ("retire", 0), ("crash", 0)],
    ),
    "timers' progress without what is indexed": Mutation(
        {"timers_done": done_whatever_is_indexed},
        [("timer", 1), ("timer", 0), ("index", 0), ("later", 4), ("deliver", 0), ("crash", 0)],
    ),
    "handle without the count of resets": Mutation(
        {"handle": handle_of_any_reset}, [("send", 0), ("give", 0), ("reset", 0), ("give", 0), ("ack", 0)]
    ),
    "snapshot without who holds": Mutation(
        {"tell": told_without_who_holds}, [("send", 0), ("give", 0), ("hold", 0), ("tell", 0), ("crash", 0)]
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", MUTATIONS)
def test_another_order_of_steps_loses_or_repeats(name: str) -> None:
    mutation = MUTATIONS[name]
    assert played(mutation.steps) == []
    assert played(mutation.steps, **mutation.rules) != []
