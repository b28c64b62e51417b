"""Long work on the event loop, in slices: others have their turn in between, and only one goes on in each turn."""

import heapq
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar

from tandemmq.common.timers import Timers, my_turn

_Item = TypeVar("_Item")
_Result = TypeVar("_Result")
_SLICE_SECONDS = 0.001
_SOME = 32
_SORTED = 256


class Slices:
    """Made when the work begins; ask for a `pause` after each small step of it."""

    def __init__(self, timers: Timers) -> None:
        self._timers = timers
        self._until = timers.elapsed() + _SLICE_SECONDS

    @property
    def over(self) -> bool:
        """Whether it is time to let others have the loop; for work that goes on in another call."""
        return self._timers.elapsed() >= self._until

    async def pause(self) -> None:
        """Let others have the loop, once the slice is over."""
        if self.over:
            await my_turn(self._timers)
            self._until = self._timers.elapsed() + _SLICE_SECONDS


async def each(work: Callable[[_Item], _Result], items: Sequence[_Item], slices: Slices) -> list[_Result]:
    """What the work gives for each item; others have the loop between some of them. A few are done at once."""
    found: list[_Result] = []
    for at in range(0, len(items), _SOME):
        if at:
            await slices.pause()
        found += map(work, items[at : at + _SOME])
    return found


async def in_order(items: Sequence[_Item], key: Callable[[_Item], Any], slices: Slices) -> list[_Item]:
    """The items, sorted in slices."""
    some = [items[at : at + _SORTED] for at in range(0, len(items), _SORTED)]
    parts: list[list[_Item]] = []
    for part in some:
        parts.append(sorted(part, key=key))
        await slices.pause()
    found: list[_Item] = []
    for one in heapq.merge(*parts, key=key):
        found.append(one)
        if len(found) % _SOME == 0:
            await slices.pause()
    return found


async def joined(pieces: Iterable[bytes], slices: Slices) -> bytes:
    """The pieces in one, which are made in slices."""
    parts = []
    for piece in pieces:
        parts.append(piece)
        await slices.pause()
    return b"".join(parts)


def in_turns(
    timers: Timers, items: Iterable[_Item], work: Callable[[_Item], object], done: Callable[[], object]
) -> None:
    """Do `work` for each item, in as many turns of the loop as it takes, then call `done`; the first turn is this."""
    left = iter(items)

    def turn() -> None:
        slices = Slices(timers)
        try:
            for one in left:
                work(one)
                if slices.over:
                    timers.call_in_line(turn)
                    return
        except BaseException:
            timers.call_in_line(turn)  # the others have theirs all the same
            raise
        done()

    turn()
