"""Histories of `fact_world`, drawn at random, and other orders of its steps that they have to find."""

import random
from dataclasses import dataclass
from typing import Any

from tandemmq.store.delivery.journal.facts import Dealt, Fact, Snapshot, TimersDone
from tandemmq.store.delivery.receiving.handles import ReceiptHandle
from tests.unit.delivery.fact_world import FAR, PLACE, Image, Step, World, oldest_told_whole, played

KINDS = [
    "send", "send", "give", "give", "hold", "ack", "ack", "bury", "sync", "later", "reset", "image", "tell", "retire",
    "crash", "crash", "timer", "index", "deliver",
]  # fmt: skip
_LONGEST = 40
_FEWEST_KINDS = 4


def drawn(source: random.Random) -> list[Step]:
    """A history. Of some kinds of steps only: few kinds make histories that all of them together hardly ever make."""
    kinds = source.sample(KINDS, source.randint(_FEWEST_KINDS, len(KINDS)))
    return [(source.choice(kinds), source.randrange(5)) for _ in range(source.randint(1, _LONGEST))]


def steps_until_wrong(seed: int, most: int, **mutation: Any) -> tuple[int, list[Step]]:
    """Play histories of a seed; gives the number of steps played, and the smallest history that goes wrong, if any."""
    source, steps = random.Random(seed), 0
    while steps < most:
        history = drawn(source)
        steps += len(history)
        if played(history, **mutation):
            return steps, smallest(history, **mutation)
    return steps, []


def smallest(history: list[Step], **mutation: Any) -> list[Step]:
    """A history that goes wrong, without the steps that it does not take, and with small numbers."""
    before = None
    while history != before:
        before = history
        for at in reversed(range(len(history))):
            shorter = history[:at] + history[at + 1 :]
            if played(shorter, **mutation):
                history = shorter
        for at, (what, number) in enumerate(history):
            tried = ([*history[:at], (what, less), *history[at + 1 :]] for less in range(number))
            history = next((one for one in tried if played(one, **mutation)), history)
    return history


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
