"""Work in a thread that nobody leaves in the middle."""

import asyncio
from collections.abc import Callable
from typing import TypeVar

Result = TypeVar("Result")


async def in_thread(work: Callable[..., Result], *arguments: object) -> Result:
    """Do ``work`` in a thread, to its end: who is cancelled meanwhile must not let others begin beside it."""
    working = asyncio.ensure_future(asyncio.to_thread(work, *arguments))
    try:
        return await asyncio.shield(working)
    except asyncio.CancelledError:
        await asyncio.wait([working])
        if not working.cancelled():
            working.exception()  # nobody waits for it any more
        raise
