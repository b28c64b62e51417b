"""FirstStep: a coroutine begins without a task, and gets one only if it must wait (as eager tasks of Python 3.12 do).

Making a task costs as much as a whole unary call, and most handlers need none. The first step of a handler therefore
runs at once, in a context of its own (contextvars), and `asyncio.current_task()` gives a stand-in, so that
`asyncio.timeout`, `TaskGroup` and the like work: what they keep of it acts on the task that comes later.

That needs two functions of asyncio which are not public, though its documentation has them ("Extending asyncio"). So a
server asks `takes_stand_ins` first; where the answer is no, it calls handlers with `without_step`.
"""

import asyncio
import asyncio.tasks
import threading
from collections.abc import Awaitable, Callable, Coroutine, Generator
from contextvars import Context, copy_context
from inspect import isawaitable
from types import CoroutineType
from typing import Any

_enter_task: Any = getattr(asyncio.tasks, "_enter_task", None)
_leave_task: Any = getattr(asyncio.tasks, "_leave_task", None)
_NOT_BEGUN = object()
"""In the place of what a coroutine waits for."""


class StandIn:
    """What `asyncio.current_task()` gives in every step of a handler, the first included: it stays the same object.

    (Cancel scopes of anyio, and with them httpx, refuse to be left in another task than they were entered in.)
    It does what a task does, through the real one as soon as there is one.
    """

    __slots__ = ("__weakref__", "_callbacks", "_cancels", "_loop", "_task")

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._cancels = 0
        self._callbacks: list[Callable[[Any], object]] = []
        self._task: asyncio.Task[None] | None = None
        """The real one, once it runs."""

    def become(self, task: "asyncio.Task[None]") -> None:
        """From now on act on a real task, which runs: what was cancelled before is cancelled where it waits next.

        (A task that is cancelled before its first step never runs: the coroutine would hang and clean nothing up.)
        """
        self._task = task
        for callback in self._callbacks:
            task.add_done_callback(callback)
        for _ in range(self._cancels):
            task.cancel()

    def __getattr__(self, name: str) -> Any:
        """All that is not said below is the real task's."""
        if self._task is None:
            raise AttributeError(f"{name}: the call has no task before it waits for the first time")
        return getattr(self._task, name)

    def cancel(self, msg: object = None) -> bool:
        """See `asyncio.Task.cancel`; before the task runs, it will be cancelled where it waits."""
        if self._task is not None:
            return self._task.cancel(msg)
        self._cancels += 1
        return True

    def uncancel(self) -> int:
        """See `asyncio.Task.uncancel`."""
        if self._task is not None:
            return self._task.uncancel()
        self._cancels = max(0, self._cancels - 1)
        return self._cancels

    def cancelling(self) -> int:
        """See `asyncio.Task.cancelling`."""
        return self._cancels if self._task is None else self._task.cancelling()

    def done(self) -> bool:
        """See `asyncio.Task.done`."""
        return self._task is not None and self._task.done()

    def cancelled(self) -> bool:
        """See `asyncio.Task.cancelled`."""
        return self._task is not None and self._task.cancelled()

    def add_done_callback(self, callback: Callable[[Any], object]) -> None:
        """See `asyncio.Task.add_done_callback`."""
        if self._task is not None:
            self._task.add_done_callback(callback)
        else:
            self._callbacks.append(callback)

    def get_loop(self) -> asyncio.AbstractEventLoop:
        """See `asyncio.Task.get_loop`."""
        return self._loop

    def get_name(self) -> str:
        """See `asyncio.Task.get_name`."""
        return "grpc call" if self._task is None else self._task.get_name()


class Suspended:
    """A coroutine that must wait: what it waits for, and where it goes on.

    It goes on in a task that awaits this object, made with `context`. To cancel it, cancel `stand_in`, not that task.
    """

    __slots__ = ("_coroutine", "_waits_for", "context", "stand_in")

    def __init__(
        self, coroutine: "Coroutine[Any, Any, Any]", waits_for: Any, context: Context, stand_in: StandIn
    ) -> None:
        self._coroutine = coroutine
        self._waits_for = waits_for
        self.context = context
        """The context of its first step."""
        self.stand_in = stand_in
        """What cancels the coroutine, now and later."""

    def __await__(self) -> Generator[Any, Any, Any]:
        """What the coroutine returns or raises."""
        coroutine, waits_for, stand_in = self._coroutine, self._waits_for, self.stand_in
        loop = stand_in.get_loop()
        task: Any = asyncio.current_task(loop)
        stand_in.become(task)
        if waits_for is _NOT_BEGUN:
            return (yield from coroutine.__await__())
        while True:
            try:
                sent = yield waits_for
            except GeneratorExit:
                coroutine.close()
                raise
            except BaseException as error:  # noqa: BLE001 - cancellation above all: it is the coroutine's to handle
                step: Callable[[Any], Any] = coroutine.throw
                argument: Any = error
            else:
                step, argument = coroutine.send, sent
            _leave_task(loop, task)
            _enter_task(loop, stand_in)
            try:
                waits_for = step(argument)
            except StopIteration as stop:
                return stop.value
            finally:
                _leave_task(loop, stand_in)
                _enter_task(loop, task)


def first_step(loop: asyncio.AbstractEventLoop, behavior: Callable[[Any, Any], Any], request: Any, call: Any) -> Any:
    """Call a handler; gives its result, or a Suspended. Raises what it raises. Must be called outside of any task."""
    context = copy_context()
    stand_in: Any = StandIn(loop)
    _enter_task(loop, stand_in)
    try:
        return context.run(_run, behavior, request, call, context, stand_in)
    finally:
        _leave_task(loop, stand_in)


def _run(behavior: Callable[[Any, Any], Any], request: Any, call: Any, context: Context, stand_in: StandIn) -> Any:
    result = behavior(request, call)
    if type(result) is not CoroutineType:
        if not isawaitable(result):
            return result
        result = _awaiting(result)
    try:
        waits_for = result.send(None)
    except StopIteration as stop:
        return stop.value
    return Suspended(result, waits_for, context, stand_in)


def without_step(loop: asyncio.AbstractEventLoop, behavior: Callable[[Any, Any], Any], request: Any, call: Any) -> Any:
    """The same by public means: a coroutine does not begin here, but in the task that awaits the Suspended."""
    context = copy_context()
    result = context.run(behavior, request, call)
    if not isawaitable(result):
        return result
    return Suspended(_awaiting(result), _NOT_BEGUN, context, StandIn(loop))


def takes_stand_ins() -> bool:
    """Whether asyncio lets a StandIn be the current task. Tried in a thread and loop of its own: it may break both."""
    taken: list[bool] = []

    def enter_and_leave(loop: asyncio.AbstractEventLoop) -> None:
        stand_in = StandIn(loop)
        try:
            _enter_task(loop, stand_in)
            within: object = asyncio.current_task(loop)
            _leave_task(loop, stand_in)
            taken.append(within is stand_in and asyncio.current_task(loop) is None)
        except Exception:  # noqa: BLE001 - in whatever way they have changed, they are of no use
            taken.append(False)
        finally:
            loop.stop()

    def run() -> None:
        loop = asyncio.SelectorEventLoop()
        loop.call_soon(enter_and_leave, loop)
        loop.run_forever()
        loop.close()

    thread = threading.Thread(target=run, name="asyncio trial")
    thread.start()
    thread.join()
    return taken == [True]


async def _awaiting(awaitable: Awaitable[Any]) -> Any:
    return await awaitable
