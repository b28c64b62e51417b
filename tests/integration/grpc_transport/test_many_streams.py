"""Thousands of calls that are begun, or end, at once: the event loop turns meanwhile, and others are answered."""

import asyncio
from collections import Counter
from typing import Any

from tests.integration.grpc_transport.hosting import OWN, PATIENCE, hosted
from tests.integration.grpc_transport.wire import wired

STREAMS = 1_500
MOST = 160
"""In a turn: what a task costs, 0.1 ms, is taken from the slice, however fast the machine is. The first slice of a
connection has 10 ms; where the machine is busy one of 5 ms, of what was left, falls in the same turn.
"""


class Turns:
    """Counts the turns of the loop, and what happens in each."""

    def __init__(self) -> None:
        self.number = 0
        self.begun: Counter[int] = Counter()
        self.ended: Counter[int] = Counter()
        self.over = False

    def count(self) -> None:
        self.number += 1
        if not self.over:
            asyncio.get_running_loop().call_soon(self.count)

    async def handle(self, _requests: Any, _context: Any) -> bytes:
        self.begun[self.number] += 1
        try:
            await asyncio.get_running_loop().create_future()
        finally:
            self.ended[self.number] += 1
        return b""


async def test_streams_that_a_client_leaves_open_and_drops_begin_and_end_a_few_at_a_time() -> None:
    turns = Turns()
    async with hosted("fast", into=turns.handle) as server:
        turns.count()
        async with wired(server.target) as wire:
            for _ in range(STREAMS):
                wire.call(f"/{OWN}/into", ended=False)
            async with asyncio.timeout(PATIENCE):
                while turns.begun.total() < STREAMS:
                    await asyncio.sleep(0.01)
        async with asyncio.timeout(PATIENCE):
            while turns.ended.total() < STREAMS:
                await asyncio.sleep(0.01)
        turns.over = True
    assert max(turns.begun.values()) <= MOST
    assert max(turns.ended.values()) <= MOST
