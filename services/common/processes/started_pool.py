"""Thread pools whose threads run before there is work for them.

`ThreadPoolExecutor` starts a thread when work comes that no idle thread can take. Where memory or processes are short
at that moment the thread cannot be started, and the work is not done. A thread that runs already needs neither.
"""

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from tandemmq.common.errors import Kind, TandemError

_LOOP_THREADS = 4
"""For `asyncio.to_thread` and the like: mostly files. What a service does there is rare: it waits its turn."""

Result = TypeVar("Result")


class NoThreads(TandemError):
    """The system starts no more threads; what needs them has not begun."""

    kind = Kind.EXHAUSTED
    remedy = "give the process more memory or more processes (ulimit -v, ulimit -u, the cgroup's memory.max, pids.max)"


def started_pool(threads: int, name: str) -> ThreadPoolExecutor:
    """A pool of ``threads`` threads, named by ``name``, all of which run already. Raises NoThreads."""
    pool = ThreadPoolExecutor(threads, thread_name_prefix=name)
    all_here = threading.Barrier(threads)
    try:
        # Each waits for the others, so that none is idle when the next one is asked for.
        for waiting in [pool.submit(all_here.wait) for _ in range(threads)]:
            waiting.result()
    except (RuntimeError, MemoryError) as error:
        all_here.abort()
        pool.shutdown(wait=True)
        raise NoThreads(f"the threads for {name} cannot be started: {error}") from error
    return pool


class ComputingThread:
    """For digests, inflating and the like, which must not wait where the disk stands and all other threads with it."""

    def __init__(self) -> None:
        self._pool: ThreadPoolExecutor | None = None

    def start(self) -> None:
        """Of the process; nothing where it runs. Raises NoThreads."""
        self._pool = self._pool or started_pool(1, "tandem-compute")

    async def do(self, work: Callable[..., Result], *arguments: object) -> Result:
        """What `work` gives; by the loop's own threads where nothing was started, as in tests."""
        return await asyncio.get_running_loop().run_in_executor(self._pool, work, *arguments)


COMPUTING = ComputingThread()


def start_loop_threads() -> None:
    """Let the running loop's own executor be one whose threads run already, and `COMPUTING` too. Raises NoThreads."""
    asyncio.get_running_loop().set_default_executor(started_pool(_LOOP_THREADS, "tandem-work"))
    COMPUTING.start()
