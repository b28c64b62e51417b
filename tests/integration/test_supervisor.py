"""The supervisor with commands that do what a service may do: serve, die, hang, talk too much."""

import asyncio
import os
import signal
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from tandemmq.node.child import Child
from tandemmq.node.errors import GivenUp, NotStarted
from tandemmq.node.plan import NODE_SERVICES, NodePlan, ServicePlan
from tandemmq.node.ports import Ports
from tandemmq.node.restart import RestartRules
from tandemmq.node.supervisor import NodeEvent, NodeListener, Supervisor

SERVE = """
import json, os, signal, sys, time
print(json.dumps({"event": "serving", "pid": os.getpid()}), flush=True)
"""
UNTIL_STOPPED = (
    "import signal, sys\nsignal.signal(signal.SIGTERM, lambda *_: sys.exit(0))\n"
    + SERVE
    + "while True: time.sleep(60)\n"
)
DEAF = "import signal\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\n" + SERVE + "while True: time.sleep(60)\n"
QUICK = RestartRules(first_pause=0.01, longest_pause=0.02, healthy_after=100.0, deaths_in_a_row=3)


class Scripted(ServicePlan):
    """A service that is a few lines of Python."""

    def command(self) -> list[str]:
        return [sys.executable, "-c", self.settings["script"]]


def node(name: str = "master", **scripts: str) -> NodePlan:
    services = {
        service: Scripted(name, service, {"script": scripts.get(service, UNTIL_STOPPED)}) for service in NODE_SERVICES
    }
    return NodePlan(name, Path("."), Ports.from_base(1), services)


class Heard:
    """What a supervisor told."""

    def __init__(self) -> None:
        self.events: list[NodeEvent] = []
        self.lines: list[str] = []
        self._changed = asyncio.Event()
        self.listener = NodeListener(self._event, lambda plan, line: self.lines.append(f"{plan.service}: {line}"))

    def _event(self, event: NodeEvent) -> None:
        self.events.append(event)
        self._changed.set()

    def of(self, kind: str, service: str | None = None) -> list[NodeEvent]:
        return [one for one in self.events if one.kind == kind and service in (None, one.service)]

    def place(self, kind: str, node: str, service: str) -> int:
        return [one[:3] for one in self.events].index((kind, node, service))

    async def until(self, condition: Callable[[], bool], seconds: float = 60.0) -> None:
        async with asyncio.timeout(seconds):
            while not condition():
                self._changed.clear()
                await self._changed.wait()


async def run_until_up(plan: NodePlan, heard: Heard, **options: Any) -> tuple[Supervisor, "asyncio.Task[None]"]:
    supervisor = Supervisor([plan], heard.listener, QUICK, **options)
    running = asyncio.ensure_future(supervisor.run())
    await heard.until(lambda: bool(heard.of("up")) or running.done())
    return supervisor, running


def is_alive(pid: int) -> bool:
    with suppress(ProcessLookupError):
        os.kill(pid, 0)
        return True
    return False


async def test_each_starts_when_the_one_before_serves_and_they_stop_the_other_way_round() -> None:
    heard = Heard()
    supervisor, running = await run_until_up(node(), heard)
    supervisor.stop("enough")
    await running
    told = [(one.kind, one.service) for one in heard.events if one.kind in ("started", "serving")]
    assert told == [(kind, service) for service in NODE_SERVICES for kind in ("started", "serving")]
    assert [one.service for one in heard.of("ended")] == ["replicator", "store", "metasync"]
    assert {one.facts["how"] for one in heard.of("ended")} == {"exit code 0"}
    assert [one.kind for one in heard.events[-1:]] == ["stopped"]
    assert not any(is_alive(one.facts["pid"]) for one in heard.of("started"))


async def test_what_dies_is_started_again() -> None:
    heard = Heard()
    supervisor, running = await run_until_up(node(), heard)
    for service in NODE_SERVICES:
        os.kill(heard.of("serving", service)[-1].facts["pid"], signal.SIGKILL)
        await heard.until(lambda name=service: len(heard.of("serving", name)) == 2)  # type: ignore[misc]
    supervisor.stop("enough")
    await running
    assert [one.facts["how"] for one in heard.of("died")] == ["SIGKILL"] * 3
    assert len({one.facts["pid"] for one in heard.of("started")}) == 6


async def test_what_dies_again_and_again_is_given_up_and_everything_stops() -> None:
    heard = Heard()
    with pytest.raises(GivenUp, match="master replicator died 4 times in a row, the last time with exit code 3"):
        await (await run_until_up(node(replicator=SERVE + "sys.exit(3)"), heard))[1]
    assert [one.facts["restart_in"] for one in heard.of("died")] == [0.01, 0.02, 0.02, None]
    assert {one.service for one in heard.of("ended")} == {"metasync", "store"}
    assert not any(is_alive(one.facts["pid"]) for one in heard.of("started"))


async def test_what_never_served_is_not_tried_again_and_its_last_words_are_told() -> None:
    heard = Heard()
    words = """import sys\nprint('{"error": {"message": "the disk is full"}}', file=sys.stderr)\nsys.exit(1)"""
    with pytest.raises(NotStarted, match=r"master store did not start \(exit code 1\): the disk is full"):
        await Supervisor([node(store=words)], heard.listener, QUICK).run()
    assert [one.service for one in heard.of("started")] == ["metasync", "store"], "the others wait for the store"
    assert not heard.of("up")


async def test_one_that_said_nothing_is_told_so() -> None:
    with pytest.raises(NotStarted, match="it said nothing"):
        await Supervisor([node(replicator="import sys; sys.exit(1)")], Heard().listener, QUICK).run()


async def test_what_does_not_stop_is_killed() -> None:
    heard = Heard()
    supervisor, running = await run_until_up(node(metasync=DEAF), heard, stop_seconds=3.0)
    supervisor.stop("enough")
    await running
    assert [one.service for one in heard.of("killed")] == ["metasync"]
    assert [one.facts["how"] for one in heard.of("ended")] == ["exit code 0", "exit code 0", "SIGKILL"]


async def test_a_second_stop_kills_everything_at_once() -> None:
    heard = Heard()
    supervisor, running = await run_until_up(node(replicator=DEAF), heard, stop_seconds=90)
    supervisor.stop("first")
    supervisor.stop("second")
    async with asyncio.timeout(60):
        await running
    assert not heard.of("killed")
    assert not any(is_alive(one.facts["pid"]) for one in heard.of("started"))


async def test_it_can_be_stopped_while_it_starts() -> None:
    heard = Heard()
    supervisor = Supervisor([node(metasync="import time; time.sleep(60)")], heard.listener, QUICK)
    running = asyncio.ensure_future(supervisor.run())
    await heard.until(lambda: bool(heard.of("started")))
    supervisor.stop("enough")
    await running
    assert [one.facts["how"] for one in heard.of("ended")] == ["SIGTERM"]


async def test_it_can_be_stopped_at_once() -> None:
    heard = Heard()
    supervisor = Supervisor([node()], heard.listener, QUICK)
    running = asyncio.ensure_future(supervisor.run())
    await asyncio.sleep(0)
    supervisor.stop("enough")
    await running
    assert not any(is_alive(one.facts["pid"]) for one in heard.of("started"))


async def test_a_pause_before_a_restart_ends_when_it_is_stopped() -> None:
    heard = Heard()
    rules = RestartRules(first_pause=600.0, longest_pause=600.0)
    supervisor = Supervisor([node(replicator=SERVE)], heard.listener, rules)
    running = asyncio.ensure_future(supervisor.run())
    await heard.until(lambda: bool(heard.of("died")) and bool(heard.of("up")))
    supervisor.stop("enough")
    await asyncio.wait_for(running, 60)
    assert len(heard.of("started", "replicator")) == 1, "the pause was not over"


async def test_a_command_that_cannot_be_run_stops_everything() -> None:
    plan = node()
    broken = type("Broken", (Scripted,), {"command": lambda self: ["/nonexistent/command"]})
    services = {**plan.services, "replicator": broken("master", "replicator", {})}
    with pytest.raises(FileNotFoundError):
        await Supervisor([NodePlan("master", Path("."), plan.ports, services)], Heard().listener, QUICK).run()


async def test_two_nodes_run_side_by_side() -> None:
    heard = Heard()
    supervisor = Supervisor([node("master"), node("slave")], heard.listener, QUICK)
    running = asyncio.ensure_future(supervisor.run())
    await heard.until(lambda: bool(heard.of("up")))
    assert {(one.node, one.service) for one in heard.of("serving")} == {
        (name, service) for name in ("master", "slave") for service in NODE_SERVICES
    }
    assert heard.place("serving", "slave", "store") < heard.place("started", "slave", "replicator")
    for service in NODE_SERVICES:
        assert heard.place("serving", "master", service) < heard.place("started", "slave", service)
    supervisor.stop("enough")
    await running


# -- one child --------------------------------------------------------------------------------------------------------


async def told_by(script: str) -> tuple[list[dict[str, object]], list[str], int]:
    events: list[dict[str, object]] = []
    lines: list[str] = []
    child = await Child.start([sys.executable, "-c", script], events.append, lines.append)
    return events, lines, await child.wait()


async def test_lines_arrive_whole_whatever_their_length() -> None:
    script = "import sys\nprint('x' * 500_000, file=sys.stderr)\nprint('{\"a\": 1}')\nprint('no event')\nsys.exit(7)"
    events, lines, code = await told_by(script)
    assert events == [{"a": 1}]
    assert sum(line.count("x") for line in lines) == 500_000
    assert "no event" in lines
    assert code == 7


async def test_bytes_that_are_no_text_and_a_last_line_without_an_end() -> None:
    _, lines, _ = await told_by(r"import sys; sys.stderr.buffer.write(b'\xff\r\nend')")
    assert lines == ["\ufffd", "end"]


async def test_a_child_is_in_a_session_of_its_own() -> None:
    events, _, _ = await told_by("import json, os; print(json.dumps({'session': os.getsid(0), 'pid': os.getpid()}))")
    assert events[0]["session"] == events[0]["pid"] != os.getsid(0)


async def test_a_child_that_is_gone_takes_signals_in_silence() -> None:
    child = await Child.start([sys.executable, "-c", ""], lambda event: None, lambda line: None)
    assert await child.wait() == 0
    child.signal(signal.SIGTERM)
    assert await child.wait() == 0
