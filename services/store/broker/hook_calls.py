"""Calling hooks: in their order, timed, and so that nothing they do can tear what the broker does."""

import time
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, NamedTuple, Protocol, TypeVar

from tandemmq.common.access.throttle import Throttle
from tandemmq.common.errors import Kind
from tandemmq.common.metrics.distribution import Distribution
from tandemmq.hooks import ConsumeHook, HookContext, SendHook
from tandemmq.store.broker.errors import BrokerError

Result = TypeVar("Result")

_SECONDS = (1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1.0)
_LOG_SECONDS = 10.0
_MOST_TEXT = 500
"""Characters of what a hook raises that clients are told."""


class HookRefused(BrokerError):
    """A hook does not want it. Nothing was stored or changed."""

    kind = Kind.NOT_PERMITTED


class Complain(Protocol):
    """Writes into the log that a hook failed."""

    def __call__(self, hook: str, point: str, error: BaseException) -> None:
        """`point`: the method."""
        ...


class HookCounts:
    """What one method of one hook has done."""

    __slots__ = ("failures", "times")

    def __init__(self) -> None:
        self.times = Distribution(_SECONDS)
        """Seconds of each call."""
        self.failures = 0
        """Calls that raised: before, that refused something."""


class _Method(NamedTuple):
    hook: str
    point: str
    call: Callable[[Any], object]
    counts: HookCounts


class HookPoint:
    """What stands around one kind of thing, from all hooks.

    `after` is called for each hook whose `before` returned, also for those before one that refused.
    """

    def __init__(self, name: str, hooks: Sequence[tuple[str, object]], complain: Complain) -> None:
        """`name`: what stands after before_ and after_."""
        self._complain = complain
        self._logged = Throttle(_LOG_SECONDS)
        self._before = [_method(hook, it, f"before_{name}") for hook, it in hooks]
        self._after = [_method(hook, it, f"after_{name}") for hook, it in hooks]

    @property
    def methods(self) -> list[_Method]:
        """All methods that are called."""
        return self._before + self._after

    def before(self, context: HookContext) -> None:
        """Ask all hooks, until one refuses. Raises HookRefused."""
        for number, method in enumerate(self._before):
            error = self._call(method, context)
            if error is not None:
                refused = HookRefused(f"The hook {method.hook} refuses it: {_text(error)}")
                self._tell(self._after[:number], context, refused)
                raise refused from error

    def after(self, context: HookContext, failure: BaseException | None = None) -> None:
        """Tell all hooks what became of it. Never raises."""
        self._tell(self._after, context, failure)

    async def around(
        self,
        context: HookContext,
        do: Callable[[], Awaitable[Result]],
        note: Callable[[Result], None] = lambda _: None,
    ) -> Result:
        """Ask, do it, tell; `note` puts what came of it into the context before that. Raises HookRefused, as `do`."""
        self.before(context)
        try:
            result = await do()
        except BaseException as error:
            self.after(context, error)
            raise
        note(result)
        self.after(context)
        return result

    def _tell(self, methods: Sequence[_Method], context: HookContext, failure: BaseException | None) -> None:
        context.failure = failure
        for method in methods:
            self._call(method, context)

    def _call(self, method: _Method, context: HookContext) -> BaseException | None:
        """What it raised: anything at all, as a hook that calls sys.exit must not end the store."""
        raised: BaseException | None = None
        begun = time.perf_counter()
        try:
            method.call(context)
        except BaseException as error:  # noqa: BLE001 - see above
            raised = error
            method.counts.failures += 1
            if self._logged.now((method.hook, method.point)):
                self._complain(method.hook, method.point, error)
        method.counts.times.add(time.perf_counter() - begun)
        return raised


class HookCalls:
    """All hooks of a store."""

    def __init__(self, hooks: Sequence[tuple[str, object]], complain: Complain) -> None:
        """`hooks`: by name, in the order of the setting; each is a SendHook, a ConsumeHook, or both."""
        senders = [(name, hook) for name, hook in hooks if isinstance(hook, SendHook)]
        consumers = [(name, hook) for name, hook in hooks if isinstance(hook, ConsumeHook)]
        self.send = HookPoint("send", senders, complain)
        self.delivery = HookPoint("delivery", consumers, complain)
        self.acknowledgement = HookPoint("acknowledgement", consumers, complain)

    def counts(self) -> list[tuple[str, str, HookCounts]]:
        """Hook, method, and what it has done."""
        points = (self.send, self.delivery, self.acknowledgement)
        return [(method.hook, method.point, method.counts) for point in points for method in point.methods]


def _method(name: str, hook: object, point: str) -> _Method:
    return _Method(name, point, getattr(hook, point), HookCounts())


def _text(error: BaseException) -> str:
    return str(error)[:_MOST_TEXT] or type(error).__name__
