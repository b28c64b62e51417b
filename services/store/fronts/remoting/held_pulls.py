"""Pulls that are held, by group and topic: they end early when an operator sets the group's position."""

import asyncio
from collections.abc import Coroutine
from typing import Any

from tandemmq.store.broker.pulled import PullAnswer


class HeldPulls:
    """Knows them."""

    def __init__(self) -> None:
        self._tasks: dict[tuple[str, str], set[asyncio.Task[PullAnswer]]] = {}

    async def hold(self, group: str, topic: str, looking: Coroutine[Any, Any, PullAnswer]) -> PullAnswer | None:
        """What the look gives; None where it was ended early. Raises what it raises."""
        task = asyncio.get_running_loop().create_task(looking, name="a held pull")
        tasks = self._tasks.setdefault((group, topic), set())
        tasks.add(task)
        try:
            await asyncio.wait((task,))
        except asyncio.CancelledError:
            task.cancel()
            raise
        finally:
            tasks.discard(task)
            if not tasks:
                self._tasks.pop((group, topic), None)
        return None if task.cancelled() else task.result()

    def end(self, group: str, topic: str) -> None:
        """End those of a group in a topic."""
        for task in list(self._tasks.get((group, topic), ())):
            task.cancel()
