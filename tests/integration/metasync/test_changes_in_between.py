"""What happens between the steps of a call: a role that changes, a disk that refuses, offsets that nobody copies."""

import asyncio
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, cast

import grpc
import pytest

from tandemmq.metadata.v1 import metadata_pb2 as pb
from tandemmq.metasync.channels import master_dialer, store_dialer
from tandemmq.metasync.errors import DocumentNotSaved, NotTheMaster
from tandemmq.metasync.keeper import Keeper
from tandemmq.metasync.master_tables import ServiceLink
from tandemmq.metasync.metrics import MetasyncMetrics
from tandemmq.metasync.node import OwnNode
from tandemmq.metasync.offset_tables import ConsumerOffsetTable
from tandemmq.metasync.puller import TablePuller
from tandemmq.metasync.service import MetadataServicer
from tandemmq.metasync.settings import load_settings
from tandemmq.metasync.standing import NodeRole, Standing
from tandemmq.metasync.tables import Content, TableKind

NOBODY = cast("grpc.aio.ServicerContext[Any, Any]", None)
"""No call here looks at its context."""


@asynccontextmanager
async def serving(root: Path) -> AsyncIterator[MetadataServicer]:
    """The servicer of a master, without its gRPC server."""
    settings = load_settings(overrides={"store_path_root_dir": root}, environment={})
    keeper = Keeper(root)
    puller = TablePuller(keeper, ServiceLink(None, 1.0, master_dialer(settings)), frozenset())
    metrics = MetasyncMetrics("cluster", "broker")
    node = OwnNode(settings, keeper, puller, Standing(NodeRole.MASTER, 1), store_dialer(settings))
    metrics.watch(keeper, puller, lambda: node.standing)
    try:
        yield MetadataServicer(keeper, node, metrics)
    finally:
        await keeper.close()


def commit(offset: int, group: str = "billing") -> pb.CommitOffsetsRequest:
    return pb.CommitOffsetsRequest(commits=[pb.OffsetCommit(group=group, topic="orders", queue_id=0, offset=offset)])


async def test_a_node_that_is_fenced_while_it_makes_a_group_takes_no_commit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with serving(tmp_path) as service:
        await service.PutTopics(pb.PutTopicsRequest(topics=[pb.TopicConfig(name="orders")]), NOBODY)
        document = service.keeper._documents[TableKind.SUBSCRIPTION_GROUPS]
        begun, may_end, save = threading.Event(), threading.Event(), document.save

        def slow(value: dict[str, Any]) -> None:
            begun.set()
            assert may_end.wait(60)
            save(value)

        monkeypatch.setattr(document, "save", slow)
        call = asyncio.ensure_future(service.CommitOffsets(commit(7), NOBODY))
        assert await asyncio.to_thread(begun.wait, 60)
        service.node.standing = Standing(NodeRole.FENCED, 1)
        may_end.set()
        with pytest.raises(NotTheMaster):
            await call
        assert not service.keeper.offsets.entries
    again = Keeper(tmp_path)
    assert not again.offsets.entries
    await again.close()


@pytest.mark.parametrize("kind", [TableKind.TOPICS, TableKind.SUBSCRIPTION_GROUPS], ids=str)
async def test_offsets_stay_when_the_deletion_of_their_topic_or_group_cannot_be_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: TableKind
) -> None:
    async with serving(tmp_path) as service:
        await service.PutTopics(pb.PutTopicsRequest(topics=[pb.TopicConfig(name="orders")]), NOBODY)
        await service.CommitOffsets(commit(7), NOBODY)

        def refuse(_value: dict[str, Any]) -> None:
            raise DocumentNotSaved("no space left")

        monkeypatch.setattr(service.keeper._documents[kind], "save", refuse)
        if kind is TableKind.TOPICS:
            deletion = service.DeleteTopics(pb.DeleteTopicsRequest(names=["orders"]), NOBODY)
        else:
            deletion = service.DeleteGroups(pb.DeleteGroupsRequest(names=["billing"]), NOBODY)  # type: ignore[assignment]
        with pytest.raises(DocumentNotSaved):
            await deletion
    again = Keeper(tmp_path)
    assert again.offsets.entries["orders@billing"].offsets == {0: 7}
    assert "orders" in again.topics.entries
    assert "billing" in again.groups.entries
    await again.close()


async def test_a_deletion_asked_for_again_takes_offsets_that_a_crash_has_left(tmp_path: Path) -> None:
    async with serving(tmp_path) as service:
        await service.PutTopics(pb.PutTopicsRequest(topics=[pb.TopicConfig(name="orders")]), NOBODY)
        await service.CommitOffsets(commit(7), NOBODY)
        await service._delete(service.keeper.topics, ["orders"])  # and killed before the offsets
    async with serving(tmp_path) as service:
        await service.DeleteTopics(pb.DeleteTopicsRequest(names=["orders"]), NOBODY)
        assert not service.keeper.offsets.entries


async def test_status_scrapes_and_changes_for_watchers_do_not_copy_all_offsets(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with serving(tmp_path) as service:
        await service.PutTopics(pb.PutTopicsRequest(topics=[pb.TopicConfig(name="orders")]), NOBODY)
        await service.CommitOffsets(commit(7), NOBODY)
        watch = service.Watch(pb.WatchRequest(tables=[pb.CONSUMER_OFFSETS]), NOBODY)
        whole = await anext(aiter(watch))
        assert whole.whole
        assert whole.last

        def copied(_table: ConsumerOffsetTable) -> Content:
            raise AssertionError("the whole table was copied")

        with monkeypatch.context() as patched:
            patched.setattr(ConsumerOffsetTable, "content", property(copied))
            status = await service.Status(pb.StatusRequest(), NOBODY)
            list(service.metrics.collect())
            await service.CommitOffsets(commit(9), NOBODY)
            change = await anext(aiter(watch))
        assert {table.table: table.entries for table in status.tables}[pb.CONSUMER_OFFSETS] == 1
        assert not change.whole
        assert [(one.topic, one.group, dict(one.offsets)) for one in change.consumer_offsets] == [
            ("orders", "billing", {0: 9})
        ]
        await cast(Any, watch).aclose()
