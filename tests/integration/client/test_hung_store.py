"""A store that hangs: it takes connections and says nothing. What waits for it without a deadline ends."""

import asyncio
import signal
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from tandemmq.client import StoreClient, StoreUnreachable, aio
from tests.contract.store_process import StoreProcess


@pytest.mark.slow
async def test_streams_end_where_the_store_hangs(steady_store: StoreProcess) -> None:
    """Without keep-alive both would wait until the test's own timeout."""
    with StoreClient(steady_store.address) as client:
        client.send("waited", b"first", queue_id=0)
        plain = client.pull_stream("waited", 0, 0)
        async with aio.StoreClient(steady_store.address) as other:
            stream = other.pull_stream("waited", 0, 0)
            following: list[Callable[[], Awaitable[Any]]] = [
                lambda: asyncio.to_thread(next, plain),
                lambda: anext(stream),
            ]
            assert [len((await one()).records) for one in following] == [1, 1]
            assert steady_store.process is not None
            steady_store.process.send_signal(signal.SIGSTOP)
            try:
                ends = await asyncio.gather(*[one() for one in following], return_exceptions=True)
            finally:
                steady_store.process.send_signal(signal.SIGCONT)
            assert [type(one) for one in ends] == [StoreUnreachable, StoreUnreachable]
