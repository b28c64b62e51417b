"""Collections stay short: what a long one leaves is frozen, and everything is looked at now and then."""

import gc
import weakref
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tandemmq.common.processes.garbage import ShortCollections, no_collections
from tandemmq.common.timers import Timers
from tests.manual_timers import ManualTimers


class Cycle:
    """Garbage that its counts of references never free."""

    def __init__(self) -> None:
        self.myself = self


@contextmanager
def short(*, long_seconds: float, timers: Timers | None = None) -> Iterator[ShortCollections]:
    """Collections of this process are kept short meanwhile."""
    found = ShortCollections(timers or ManualTimers(), long_seconds=long_seconds)
    found.start()
    try:
        yield found
    finally:
        found.stop()


async def test_what_a_long_collection_leaves_is_not_looked_at_again() -> None:
    kept = [[number] for number in range(50_000)]
    with short(long_seconds=0.0) as collections:
        gc.collect()
        assert collections.frozen == 1
        assert gc.get_freeze_count() > len(kept)
    assert gc.get_freeze_count() == 0, "given back when it stops"


@pytest.mark.slow
async def test_a_short_or_young_collection_freezes_nothing() -> None:
    with short(long_seconds=60.0) as collections:
        gc.collect()
        assert collections.frozen == 0
    with short(long_seconds=0.0) as collections:
        gc.collect(1)
        assert collections.frozen == 0


@pytest.mark.slow
async def test_frozen_garbage_goes_at_the_next_look_at_everything() -> None:
    cycle = Cycle()
    gone = weakref.ref(cycle)
    timers = ManualTimers()
    with short(long_seconds=0.0, timers=timers):
        gc.collect()
        del cycle
        gc.collect()
        assert gone() is not None, "frozen"
        await timers.advance(599)
        assert gone() is not None, "its time has not come"
        await timers.advance(1)
        assert gone() is None


async def test_it_may_be_stopped_twice_and_before_its_start() -> None:
    heard = len(gc.callbacks)
    with short(long_seconds=0.0) as collections:
        collections.stop()
    ShortCollections(ManualTimers()).stop()
    assert len(gc.callbacks) == heard


def test_nothing_is_collected_while_a_service_is_imported_and_what_it_made_is_looked_at_no_more() -> None:
    seen = list[str]()
    before = gc.get_freeze_count()
    gc.callbacks.append(seen_by := lambda phase, _: seen.append(phase))
    try:
        with no_collections():
            kept: list[list[list[int]]] = [[[]] for _ in range(10 * gc.get_threshold()[0])]
            assert not seen
    finally:
        gc.callbacks.remove(seen_by)
    assert gc.isenabled()
    assert gc.get_freeze_count() - before >= len(kept)
    gc.unfreeze()


def test_collections_go_on_after_an_import_that_failed() -> None:
    with pytest.raises(ModuleNotFoundError), no_collections():
        raise ModuleNotFoundError
    assert gc.isenabled()
    gc.unfreeze()
