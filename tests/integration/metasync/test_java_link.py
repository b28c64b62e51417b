"""A master that speaks remoting, as a slave asks it: what of its tables is taken, and what is refused."""

import json
from pathlib import Path
from typing import Any

import pytest

from tandemmq.common.net.remoting.connection import RemotingConnection
from tandemmq.common.net.remoting.handlers import Handlers
from tandemmq.common.net.remoting.server import RemotingServer
from tandemmq.common.wire.remoting.command import Command
from tandemmq.metasync.java_master import ASKED, JavaLink
from tandemmq.metasync.keeper import Keeper
from tandemmq.metasync.puller import TablePuller
from tandemmq.metasync.tables import TableKind


class RemotingMaster:
    """Answers with documents that a test sets."""

    def __init__(self) -> None:
        self.documents: dict[TableKind, dict[str, Any] | bytes] = {
            kind: {kind.key: {}, "dataVersion": {"counter": 1, "timestamp": 1_000}} for kind in TableKind
        }
        self.server = RemotingServer(Handlers(dict.fromkeys(ASKED.values(), self.answer)))
        self.address = f"127.0.0.1:{self.server.add_port('127.0.0.1:0')}"

    def answer(self, _: RemotingConnection, request: Command) -> Command:
        kind = next(kind for kind, code in ASKED.items() if code == request.code)
        document = self.documents[kind]
        return request.answer(body=document if isinstance(document, bytes) else json.dumps(document).encode())

    def says(self, kind: TableKind, counter: int, entries: dict[str, Any], timestamp: int = 1_000) -> None:
        self.documents[kind] = {kind.key: entries, "dataVersion": {"counter": counter, "timestamp": timestamp}}


async def test_what_is_taken_and_what_is_refused(tmp_path: Path) -> None:
    keeper, master = Keeper(tmp_path), RemotingMaster()
    await master.server.start()
    puller = TablePuller(keeper, JavaLink(master.address, 30.0, keeper), frozenset())
    groups = TableKind.SUBSCRIPTION_GROUPS
    try:
        master.says(TableKind.TOPICS, 3, {"T": {"topicName": "T"}})
        master.says(groups, 5, {"G": {"groupName": "G"}})
        master.documents[TableKind.CONSUMER_OFFSETS] = b'{"offsetTable":{"T@G":{0:7}}}'
        master.documents[TableKind.DELAY_OFFSETS] = b'{"offsetTable":{3:9}}'
        await puller.cycle()
        assert puller.problems == {}
        assert (set(keeper.topics.entries), set(keeper.groups.entries)) == ({"T"}, {"G"})
        assert (keeper.offsets.entries["T@G"].offsets, keeper.delays.entries) == ({0: 7}, {"3": 9})

        versions = {kind: keeper.table(kind).version for kind in TableKind}
        await puller.cycle()
        assert {kind: keeper.table(kind).version for kind in TableKind} == versions

        # A 4.9 that was started again counts from 0; what it has is what it had.
        master.says(groups, 0, {"G": {"groupName": "G"}}, timestamp=2_000)
        await puller.cycle()
        assert (puller.problems, keeper.groups.version) == ({}, versions[groups])
        master.says(groups, 1, {"H": {"groupName": "H"}}, timestamp=3_000)
        await puller.cycle()
        assert (puller.problems, set(keeper.groups.entries)) == ({}, {"H"})

        # One that has lost its files is not believed, nor are its offsets.
        master.says(groups, 0, {}, timestamp=4_000)
        master.documents[TableKind.CONSUMER_OFFSETS] = b'{"offsetTable":{}}'
        await puller.cycle()
        assert "is older" in puller.problems[groups]
        assert (set(keeper.groups.entries), set(keeper.offsets.entries)) == ({"H"}, {"T@G"})
    finally:
        await master.server.stop()
        await keeper.close()


@pytest.mark.parametrize(
    "nonsense", [b"", b"[]", b"{}", b'{"offsetTable":[]}', b'{"topicConfigTable":{"T":1}}', b"\xff"]
)
async def test_nonsense_in_one_table_stops_no_other(tmp_path: Path, nonsense: bytes) -> None:
    keeper, master = Keeper(tmp_path), RemotingMaster()
    await master.server.start()
    puller = TablePuller(keeper, JavaLink(master.address, 30.0, keeper), frozenset())
    try:
        master.documents[TableKind.TOPICS] = nonsense
        master.says(TableKind.SUBSCRIPTION_GROUPS, 2, {"G": {"groupName": "G"}})
        await puller.cycle()
        assert "makes no sense" in puller.problems[TableKind.TOPICS]
        assert set(keeper.groups.entries) == {"G"}
        await master.server.stop()
        await puller.cycle()
        assert set(puller.problems) == set(TableKind)
        assert set(keeper.groups.entries) == {"G"}
    finally:
        await master.server.stop()
        await keeper.close()
