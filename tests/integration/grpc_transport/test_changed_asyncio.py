"""A Python whose asyncio has lost, or changed, what handlers begin with: every call gets a task, and all goes on."""

import asyncio
import logging
import platform
from collections.abc import Callable
from typing import Any

import grpc
import pytest

from tandemmq.common.grpc_transport.aio import first_step
from tests.integration.grpc_transport.hosting import Hosted, failure, hosted, sending, within

QUICK = first_step.first_step
SLOW = first_step.without_step


def _refuses_all_but_tasks(_loop: object, task: object) -> None:
    if not isinstance(task, asyncio.Task):
        raise TypeError(f"{task!r} is not a task")


def _does_something_else(_loop: object, _task: object) -> None:
    pass


def _wants_more(_loop: object, _task: object, _more: object) -> None:
    pass


CHANGES: list[Callable[..., None] | None] = [None, _refuses_all_but_tasks, _does_something_else, _wants_more]


def way_of(hosted: Hosted) -> Any:
    """How the server calls handlers."""
    server: Any = hosted.server
    return server.take_step


async def work(request: bytes, _context: Any) -> bytes:
    task = asyncio.current_task()
    async with asyncio.timeout(30), asyncio.TaskGroup() as group:
        group.create_task(asyncio.sleep(0))
    await asyncio.sleep(0)
    assert asyncio.current_task() is task
    return request


async def work_on_all(requests: Any, context: Any) -> bytes:
    return b"".join([await work(request, context) async for request in requests])


def at_once(request: bytes, _context: Any) -> bytes:
    return request


async def fails(_request: bytes, context: Any) -> None:
    await context.abort(grpc.StatusCode.NOT_FOUND, "there is none")


async def test_this_python_is_taken_at_its_word() -> None:
    """On every Python that we test with, calls begin without a task."""
    assert first_step.takes_stand_ins()
    async with hosted("fast", unary=work) as server:
        assert way_of(server) is QUICK
        assert await within(server.unary(b"a")) == b"a"


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("name", ["_enter_task", "_leave_task"])
async def test_calls_go_on_where_it_has_changed(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, name: str, change: Callable[..., None] | None
) -> None:
    monkeypatch.setattr(first_step, name, change)
    present = asyncio.current_task()
    with caplog.at_level(logging.WARNING):
        async with hosted("fast", unary=work, into=work_on_all) as server:
            assert way_of(server) is SLOW
            assert await within(server.unary(b"a")) == b"a"
            assert await within(server.into(sending(b"b", b"c"))) == b"bc"
            assert asyncio.current_task() is present
    assert f"Python {platform.python_version()} has changed asyncio.tasks._enter_task or _leave_task" in caplog.text


async def test_all_kinds_of_ends_without_a_first_step(monkeypatch: pytest.MonkeyPatch) -> None:
    cancelled = asyncio.Event()
    begun = asyncio.Event()

    async def for_ever(_requests: Any, _context: Any) -> None:
        begun.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            cancelled.set()
            raise

    monkeypatch.setattr(first_step, "_enter_task", None)
    async with hosted("fast", unary=at_once) as server:
        assert await within(server.unary(b"at once")) == b"at once"
    async with hosted("fast", unary=fails, both=for_ever) as server:
        assert (await failure(server.unary(b""))).code() is grpc.StatusCode.NOT_FOUND
        call = server.both(sending(b"a"))
        await within(begun.wait())
        call.cancel()
        await within(cancelled.wait())
