"""Ending what runs in the background."""

import asyncio
from contextlib import suppress
from typing import Any

from tandemmq.common.log_output import get_log
from tandemmq.common.timers import Timers, time_limit

log = get_log(__name__)

_TRIES = 5
_TRY_SECONDS = 1.0


async def end_tasks(timers: Timers, *tasks: "asyncio.Future[Any] | None") -> None:
    """Cancel tasks; how they end does not matter. One that does not within 5 s is left alone, and told."""
    left = [task for task in tasks if task is not None]
    for _ in range(_TRIES):
        left = [task for task in left if not task.done()]
        if not left:
            return
        for task in left:
            task.cancel()
        with suppress(TimeoutError):
            async with time_limit(timers, _TRY_SECONDS):
                await asyncio.wait(left)
    for task in left:
        if not task.done():
            log.error("a background task does not end", task=repr(task))
