"""Keeps the services of one or more nodes alive, and stops them in order.

What it tells, as `NodeEvent`s, in the order in which it happens:

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

from tandemmq.common.child_process import how_it_ended
from tandemmq.node.child import Child
from tandemmq.node.errors import GivenUp, NotStarted
from tandemmq.node.plan import START_ORDER, STOP_ORDER, NodePlan, ServicePlan, services_in
from tandemmq.node.restart import RestartPolicy, RestartRules

_STOP_SECONDS = 30.0
"""How long a service may take to stop before it is killed."""


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
    """A service that is kept alive."""

    plan: ServicePlan
    policy: RestartPolicy
    child: Child | None = None
    served_at: float | None = None
    """When the present process began to serve."""
    has_served: asyncio.Event = field(default_factory=asyncio.Event)
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
    ) -> None:
        self._nodes = nodes
        self._listener = listener
        self._stop_seconds = stop_seconds
        rules = rules or RestartRules()
        self._kept = {
            (node.name, plan.service): _Kept(plan, RestartPolicy(rules))
            for node in nodes
            for plan in services_in(START_ORDER, node)
        }
        for kept in self._kept.values():
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
        befores = [None, *self._nodes]
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
            for kept in self._kept.values():
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

    async def _run_node(self, node: NodePlan, before: NodePlan | None) -> None:
        """One service after the other, each when the one before serves, and the same one of the node before."""
        for plan in services_in(START_ORDER, node):
            if before is not None and plan.service in before.services:
                await self._kept[before.name, plan.service].has_served.wait()
            kept = self._kept[node.name, plan.service]
            self._tasks.append(asyncio.ensure_future(self._guarded(self._keep(kept))))
            await kept.has_served.wait()

    async def _keep(self, kept: _Kept) -> None:
        """Start a service whenever it is not running."""
        while not self._stopping.is_set():
            kept.served_at = None
            kept.idle.clear()
            try:
                child = kept.child = await Child.start(
                    kept.plan.command(),
                    on_event=lambda event: self._heard(kept, event),
                    on_line=lambda line: self._listener.line(kept.plan, line),
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
            raise NotStarted(f"{kept.plan.name} did not start ({how_it_ended(code)}): {child.last_words}")
        served = time.monotonic() - kept.served_at if kept.served_at is not None else 0.0
        pause = kept.policy.died(served)
        how, deaths = how_it_ended(code), kept.policy.deaths
        self._tell("died", kept, how=how, served_seconds=round(served, 3), deaths=deaths, restart_in=pause)
        if pause is None:
            raise GivenUp(f"{kept.plan.name} died {deaths} times in a row, the last time with {how}")
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._stopping.wait(), pause)

    def _heard(self, kept: _Kept, event: dict[str, Any]) -> None:
        if event.get("event") == "serving":
            kept.served_at = time.monotonic()
            kept.has_served.set()
            self._tell("serving", kept, **{name: value for name, value in event.items() if name != "event"})

    async def _tell_when_up(self, begun: float) -> None:
        await asyncio.gather(*(kept.has_served.wait() for kept in self._kept.values()))
        self._tell("up", seconds=round(time.monotonic() - begun, 3))

    # -- stopping ---------------------------------------------------------------------------------------------------

    async def _stop_node(self, node: NodePlan) -> None:
        for plan in services_in(STOP_ORDER, node):
            await self._stop_service(self._kept[node.name, plan.service])

    async def _stop_service(self, kept: _Kept) -> None:
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
        node, service = (kept.plan.node, kept.plan.service) if kept is not None else ("", "")
        self._listener.event(NodeEvent(kind, node, service, facts))
