"""Keeps the services of one or more nodes alive, and stops them in order.

Services may share a process: then each is told of what happens to it. What it tells, as `NodeEvent`s, in the order in
which it happens:

======== ============================================================ ==================================================
kind     of                                                           facts
======== ============================================================ ==================================================
started  a service: its process runs                                  pid
serving  a service: what it said itself when it began to serve        address, pid, ...
died     a service that should have lived                             how, served_seconds, deaths, restart_in (or None)
killed   a service that did not stop in time                          seconds
ended    a service that was stopped                                   how
up       everything: each service serves for the first time           seconds
stopping everything                                                   reason
stopped  everything                                                   -
======== ============================================================ ==================================================
"""

import asyncio
import contextlib
import signal
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from tandemmq.common.processes.child_process import how_it_ended
from tandemmq.node.child import NOTHING_SAID, Child, spoken
from tandemmq.node.errors import GivenUp, NotStarted, RefusedSettings
from tandemmq.node.plan import NodePlan, ServicePlan
from tandemmq.node.processes import Layout, ProcessPlan, processes_of
from tandemmq.node.restart import RestartPolicy, RestartRules

_WRONG_SETTINGS = 2
"""Exit code of a command whose options or settings are wrong."""
_STOP_SECONDS = 30.0
"""How long a process may take to stop before it is killed."""


class NodeEvent(NamedTuple):
    """Something that happened; `node` and `service` are empty where it is about everything."""

    kind: str
    node: str
    service: str
    facts: dict[str, Any]


class NodeListener(NamedTuple):
    """Who is told."""

    event: Callable[[NodeEvent], None]
    line: Callable[[ServicePlan, str], None]
    """A line of a service's log."""


@dataclass
class _Kept:
    """A process that is kept alive, with the services in it."""

    plan: ProcessPlan
    policy: RestartPolicy
    child: Child | None = None
    serving: set[str] = field(default_factory=set)
    """Those of its services that serve, in the present process."""
    served_at: float | None = None
    """When all services of the present process served."""
    has_served: asyncio.Event = field(default_factory=asyncio.Event)
    """Whether all of them served once."""
    idle: asyncio.Event = field(default_factory=asyncio.Event)
    """Whether there is no process, nor one about to be."""


class Supervisor:
    """Runs nodes until it is told to stop, or has to give up."""

    def __init__(
        self,
        nodes: Sequence[NodePlan],
        listener: NodeListener,
        rules: RestartRules | None = None,
        stop_seconds: float = _STOP_SECONDS,
        layout: Layout = Layout.APART,
    ) -> None:
        self._in_turn = layout is Layout.APART
        """Whether a process of a node waits for the one before. Else the time to start is theirs together."""
        self._listener = listener
        self._stop_seconds = stop_seconds
        rules = rules or RestartRules()
        self._nodes = [[_Kept(plan, RestartPolicy(rules)) for plan in processes_of(node, layout)] for node in nodes]
        """The processes of each node, in the order in which they start."""
        self._kept = [kept for node in self._nodes for kept in node]
        for kept in self._kept:
            kept.idle.set()
        self._stopping = asyncio.Event()
        self._reason = ""
        self._failure: Exception | None = None
        self._tasks: list[asyncio.Task[None]] = []

    async def run(self) -> None:
        """Start everything, keep it running, stop it: returns when no process is left.

        Raises:
            NotStarted: a service ended before it ever served. GivenUp: one died again and again. The others are stopped
            then.
        """
        begun = time.monotonic()
        befores = [[], *self._nodes]
        self._tasks = [
            asyncio.ensure_future(self._guarded(self._run_node(node, before)))
            for node, before in zip(self._nodes, befores, strict=False)
        ]
        self._tasks.append(asyncio.ensure_future(self._tell_when_up(begun)))
        await self._stopping.wait()
        self._tell("stopping", reason=self._reason)
        await asyncio.gather(*(self._stop_node(node) for node in self._nodes))
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._tell("stopped")
        if self._failure is not None:
            raise self._failure

    def stop(self, reason: str) -> None:
        """Stop everything, in order. A second call kills what still runs."""
        if self._stopping.is_set():
            for kept in self._kept:
                if kept.child is not None:
                    kept.child.signal(signal.SIGKILL)
            return
        self._reason = reason
        self._stopping.set()

    # -- running ----------------------------------------------------------------------------------------------------

    async def _guarded(self, work: Any) -> None:
        try:
            await work
        except Exception as error:  # noqa: BLE001 - raised again by run, when the others are stopped
            self._failure = self._failure or error
            if not self._stopping.is_set():
                self.stop(str(error))

    async def _run_node(self, node: list[_Kept], before: list[_Kept]) -> None:
        """One process after the other, each when those serve that have the same services of the node before."""
        for kept in node:
            own = {plan.service for plan in kept.plan.services}
            for other in before:
                if own & {plan.service for plan in other.plan.services}:
                    await other.has_served.wait()
            self._tasks.append(asyncio.ensure_future(self._guarded(self._keep(kept))))
            if self._in_turn:
                await kept.has_served.wait()

    async def _keep(self, kept: _Kept) -> None:
        """Start a process whenever it is not running."""
        while not self._stopping.is_set():
            kept.served_at = None
            kept.serving.clear()
            kept.idle.clear()
            try:
                child = kept.child = await Child.start(
                    kept.plan.command(),
                    on_event=lambda event: self._heard(kept, event),
                    on_line=lambda line: self._listener.line(*kept.plan.said(line)),
                )
                if self._stopping.is_set():  # it was stopped while the process was being made
                    child.signal(signal.SIGTERM)
                self._tell("started", kept, pid=child.pid)
                code = await child.wait()
            finally:
                kept.child = None
                kept.idle.set()
            if self._stopping.is_set():
                self._tell("ended", kept, how=how_it_ended(code))
                return
            await self._mourn(kept, child, code)

    async def _mourn(self, kept: _Kept, child: Child, code: int) -> None:
        """Wait before the next start. Raises NotStarted, GivenUp."""
        if not kept.has_served.is_set():
            kind = RefusedSettings if code == _WRONG_SETTINGS else NotStarted
            raise kind(f"{kept.plan.name} did not start ({how_it_ended(code)}): {_last_words(kept, child)}")
        served = time.monotonic() - kept.served_at if kept.served_at is not None else 0.0
        pause = kept.policy.died(served)
        how, deaths = how_it_ended(code), kept.policy.deaths
        self._tell("died", kept, how=how, served_seconds=round(served, 3), deaths=deaths, restart_in=pause)
        if pause is None:
            raise GivenUp(f"{kept.plan.name} died {deaths} times in a row, the last time with {how}")
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._stopping.wait(), pause)

    def _heard(self, kept: _Kept, event: dict[str, Any]) -> None:
        if event.get("event") != "serving":
            return
        plan = kept.plan.of(event.get("service"))
        kept.serving.add(plan.service)
        if len(kept.serving) == len(kept.plan.services):
            kept.served_at = time.monotonic()
            kept.has_served.set()
        facts = {name: value for name, value in event.items() if name not in ("event", "service")}
        self._listener.event(NodeEvent("serving", plan.node, plan.service, facts))

    async def _tell_when_up(self, begun: float) -> None:
        await asyncio.gather(*(kept.has_served.wait() for kept in self._kept))
        self._tell("up", seconds=round(time.monotonic() - begun, 3))

    # -- stopping ---------------------------------------------------------------------------------------------------

    async def _stop_node(self, node: list[_Kept]) -> None:
        for kept in reversed(node):
            await self._stop_process(kept)

    async def _stop_process(self, kept: _Kept) -> None:
        if kept.child is not None:
            kept.child.signal(signal.SIGTERM)
        try:
            await asyncio.wait_for(kept.idle.wait(), self._stop_seconds)
        except TimeoutError:
            self._tell("killed", kept, seconds=self._stop_seconds)
            if kept.child is not None:
                kept.child.signal(signal.SIGKILL)
            await kept.idle.wait()

    def _tell(self, kind: str, kept: _Kept | None = None, **facts: Any) -> None:
        """Of everything, or of each service of a process."""
        of = [(plan.node, plan.service) for plan in kept.plan.services] if kept is not None else [("", "")]
        for node, service in reversed(of) if kind == "ended" else of:  # as they started, as they stopped
            self._listener.event(NodeEvent(kind, node, service, facts))


def _last_words(kept: _Kept, child: Child) -> str:
    """Why a process ended, as far as it said so."""
    return spoken(kept.plan.said(child.last_lines[-1])[1]) if child.last_lines else NOTHING_SAID
