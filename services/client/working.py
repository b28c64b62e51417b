"""worker: a handler is called with each message of a group, in threads; for programs without asyncio."""

import asyncio
import contextvars
import inspect
import signal
import threading
from collections.abc import Awaitable, Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Unpack

from tandemmq.client import aio_worker
from tandemmq.client.aio_consumer import INVISIBLE_SECONDS
from tandemmq.client.aio_consumer import Message as AioMessage
from tandemmq.client.aio_worker import GRACE_SECONDS, BackOff, Handler, WorkerCounts, check_numbers
from tandemmq.client.background import BACKGROUND
from tandemmq.client.cluster import Access
from tandemmq.client.message import MessageContent
from tandemmq.client.observing import Observers
from tandemmq.client.outgoing import Seconds


def worker(
    handler: Callable[[MessageContent], object] | Callable[[MessageContent], Awaitable[object]],
    addresses: str | Sequence[str],
    *,
    group: str,
    topic: str,
    filter: str = "*",
    sql: str = "",
    concurrency: int = 16,
    retry_after: BackOff | None = None,
    invisible: Seconds = INVISIBLE_SECONDS,
    attempts: int | None = None,
    grace: float = GRACE_SECONDS,
    stop: threading.Event | None = None,
    observers: Observers = (),
    **access: Unpack[Access],
) -> WorkerCounts:
    """Call `handler` with each message until SIGTERM, SIGINT or `stop`; `aio.worker` says what the arguments mean.

    A plain function runs in one of `concurrency` threads, a coroutine function on an event loop. Signals are heard
    where this is called in the main thread.
    """
    check_numbers(concurrency, attempts)
    with ThreadPoolExecutor(concurrency, "tandemmq worker") as threads:
        loop = BACKGROUND.loop
        stopping = asyncio.Event()

        def end() -> None:
            loop.call_soon_threadsafe(stopping.set)

        work = aio_worker.worker(
            _awaited(handler, threads),
            addresses,
            group=group,
            topic=topic,
            filter=filter,
            sql=sql,
            concurrency=concurrency,
            retry_after=retry_after,
            invisible=invisible,
            attempts=attempts,
            grace=grace,
            stop=stopping,
            observers=observers,
            **access,
        )
        with _signals(end):
            doing = asyncio.run_coroutine_threadsafe(work, loop)
            if stop is not None:
                watcher = threading.Thread(target=_watch, args=(stop, end), daemon=True)
                watcher.start()
            return doing.result()


def _watch(stop: threading.Event, end: Callable[[], None]) -> None:
    stop.wait()
    end()


def _awaited(handler: Callable[[MessageContent], object], threads: ThreadPoolExecutor) -> Handler:
    if inspect.iscoroutinefunction(handler):
        return handler

    async def in_thread(message: AioMessage) -> object:
        content = MessageContent(message.topic, message.record, message.delivery_number)
        seen = contextvars.copy_context()  # what observers have put there
        return await asyncio.get_running_loop().run_in_executor(threads, seen.run, handler, content)

    return in_thread


@contextmanager
def _signals(end: Callable[[], None]) -> Iterator[None]:
    """While it lasts SIGTERM and SIGINT end the worker; the second one ends the process as ever."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}

    def heard(number: int, frame: object) -> None:
        signal.signal(number, before[signal.Signals(number)])
        end()

    try:
        for number in before:
            signal.signal(number, heard)
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
