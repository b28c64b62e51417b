"""Thread pools whose threads run before there is work for them.

`ThreadPoolExecutor` starts a thread when work comes that no idle thread can take. Where memory or processes are short
at that moment the thread cannot be started, and the work is not done. A thread that runs already needs neither.
"""

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor

from tandemmq.common.errors import Kind, TandemError

_LOOP_THREADS = 4
"""For `asyncio.to_thread` and the like. What a service does there is rare: it waits its turn."""


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


def start_loop_threads() -> None:
    """Let the running loop's own executor be one whose threads run already. Raises NoThreads."""
    asyncio.get_running_loop().set_default_executor(started_pool(_LOOP_THREADS, "tandem-work"))
