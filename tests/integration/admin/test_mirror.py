"""A mirror of a real metasync: current, kept when that is away, and gone when nobody uses it."""

import asyncio
import time
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from tandemmq.admin.books import mirror as module
from tandemmq.admin.books.mirror import Mirror
from tandemmq.admin.cluster.nodes import Nodes
from tandemmq.admin.settings import AdminSettings
from tandemmq.metadata.v1 import metadata_pb2 as pb
from tests.metasync_process import MetasyncProcess

SECONDS = 40.0


@asynccontextmanager
async def following(metasync: MetasyncProcess, timeout_ms: int = 30_000) -> AsyncGenerator[Mirror, None]:
    nodes = f"one=127.0.0.1:1;replicator=127.0.0.1:1;metasync={metasync.address}"
    all_nodes = Nodes(AdminSettings.load(environment={}, overrides={"adminNodes": nodes, "adminTimeout": timeout_ms}))
    mirror = Mirror(all_nodes.all[0])
    try:
        yield mirror
    finally:
        await mirror.close()
        await all_nodes.close()


async def until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + SECONDS
    while not condition():
        assert time.monotonic() < deadline
        await asyncio.sleep(0.01)


def put(metasync: MetasyncProcess, *names: str) -> pb.DataVersion:
    with metasync.stub() as stub:
        topics = [pb.TopicConfig(name=name) for name in names]
        return stub.PutTopics(pb.PutTopicsRequest(topics=topics), timeout=30, wait_for_ready=True).version


async def test_it_follows_and_outlives_its_metasync(tmp_path: Path) -> None:
    with MetasyncProcess(tmp_path / "node") as metasync:
        await asyncio.to_thread(put, metasync, "first")
        async with following(metasync) as mirror:
            assert await mirror.use()
            assert "first" in mirror.tables.topics
            version = await asyncio.to_thread(put, metasync, "second")
            await mirror.see(lambda tables: tables.reached(pb.TOPICS, version))
            assert "second" in mirror.tables.topics

            await asyncio.to_thread(metasync.stop)
            await until(lambda: not mirror.following)
            assert not await mirror.use()
            assert mirror.reason
            assert {"first", "second"} <= mirror.tables.topics.keys()
            assert mirror.current_ms > 0

            await asyncio.to_thread(metasync.start)
            await asyncio.to_thread(put, metasync, "third")
            await until(lambda: mirror.following and "third" in mirror.tables.topics)
            assert await mirror.use()
            assert mirror.reason == ""


async def test_one_that_nobody_uses_ends_and_begins_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "UNUSED_SECONDS", 3.0)  # longer than the first tables take
    with MetasyncProcess(tmp_path / "node") as metasync:
        await asyncio.to_thread(put, metasync, "first")
        async with following(metasync) as mirror:
            assert await mirror.use()
            await until(lambda: not mirror.following)
            assert not mirror.tables.topics, "it takes no memory"
            assert await mirror.use()
            assert "first" in mirror.tables.topics


async def test_a_metasync_that_is_not_there_is_given_up_in_time(tmp_path: Path) -> None:
    metasync = MetasyncProcess(tmp_path / "node")
    metasync.address = "127.0.0.1:1"
    async with following(metasync, 300) as mirror:
        begun = time.monotonic()
        assert not await mirror.use()
        assert mirror.reason
        assert not mirror.tables.whole
        assert time.monotonic() - begun < SECONDS
