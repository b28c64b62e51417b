"""What a real RocketMQ 4.9.8 wrote and answered is read, and written again as equal objects."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tandemmq.common.documents.java_json import dumps_table, loads
from tandemmq.metasync.data_version import DataVersion
from tandemmq.metasync.keeper import AnyTable
from tandemmq.metasync.offset_tables import ConsumerOffsetTable, DelayOffsetTable
from tandemmq.metasync.tables import ConfigTable, TableKind
from tests.golden import golden_store
from tests.unit.metasync.test_transfers import through

TABLES: dict[TableKind, Callable[[], AnyTable]] = {
    TableKind.TOPICS: lambda: ConfigTable(TableKind.TOPICS),
    TableKind.SUBSCRIPTION_GROUPS: lambda: ConfigTable(TableKind.SUBSCRIPTION_GROUPS),
    TableKind.CONSUMER_OFFSETS: ConsumerOffsetTable,
    TableKind.DELAY_OFFSETS: DelayOffsetTable,
}

BODIES = {
    TableKind.TOPICS: "get-all-topic-config",
    TableKind.SUBSCRIPTION_GROUPS: "get-all-subscriptiongroup-config",
    TableKind.CONSUMER_OFFSETS: "get-all-consumer-offset",
    TableKind.DELAY_OFFSETS: "get-all-delay-offset",
}

pytestmark = pytest.mark.golden


def without_version(document: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in document.items() if key != "dataVersion"}


def check(kind: TableKind, data: bytes) -> None:
    """Read, written, read again; and sent through pages."""
    document, table = loads(data), TABLES[kind]()
    content = table.read(document)
    written = table.document(content)
    assert without_version(written) == without_version(document)
    assert content.version == DataVersion.from_json(document.get("dataVersion"))
    assert table.read(loads(dumps_table(written))) == content
    assert json.loads(dumps_table(written)) == written, "what we write is standard JSON"
    came = through(kind, content)
    assert came.version == content.version
    for name, entry in content.entries.items():
        if isinstance(entry, dict):
            assert entry.items() <= came.entries[name].items(), "RocketMQ 5's fields are added with their defaults"
        else:
            assert came.entries[name] == entry


@pytest.mark.parametrize("kind", TableKind)
@pytest.mark.parametrize("suffix", ["", ".bak"])
@pytest.mark.parametrize("node", ["config-master", "config-slave"])
def test_files(kind: TableKind, suffix: str, node: str) -> None:
    path = golden_store("metadata") / node / (kind.file_name + suffix)
    if not path.is_file():
        pytest.skip("RocketMQ had not written it yet")
    check(kind, path.read_bytes())


@pytest.mark.parametrize("kind", TableKind)
@pytest.mark.parametrize("variant", ["", ".slave", ".rocketmq-serialized"])
def test_answers(kind: TableKind, variant: str) -> None:
    check(kind, (golden_store("metadata") / f"{BODIES[kind]}{variant}.response.body.bin").read_bytes())


def test_the_tables_hold_what_the_capture_says() -> None:
    root: Path = golden_store("metadata")
    expected = json.loads((root / "expected.json").read_bytes())
    offsets = ConsumerOffsetTable()
    offsets.load(loads((root / "config-master" / "consumerOffset.json").read_bytes()))
    assert offsets.entries["HaOrders@G-search"].offsets == {0: 530, 1: 101, 2: 67, 3: 80}
    assert expected, "the capture describes itself"
