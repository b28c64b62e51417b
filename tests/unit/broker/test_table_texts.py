"""A table is written whole, but its entries' texts are made once; the bytes are those of the whole document."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tandemmq.common.documents import java_json, sealed
from tandemmq.store.broker.topics import LocalTopicTable, TopicConfig
from tandemmq.store.broker.watched_topics import WatchedTopicTable
from tandemmq.store.log.edges.disk import LocalDisk
from tests.unit.broker.broker_kit import SetClock

_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
_OBJECTS = st.dictionaries(st.text(max_size=8), _VALUES, max_size=3)
_TABLES = st.dictionaries(st.text(max_size=8), _OBJECTS, max_size=3)


@given(_OBJECTS, st.text(max_size=8), _TABLES)
def test_the_texts_put_together_are_the_document(rest: dict[str, Any], key: str, table: dict[str, Any]) -> None:
    texts = {name: java_json.entry_text(entry) for name, entry in table.items()}
    others = {name: value for name, value in rest.items() if name != key}
    assert java_json.dumps_with(others, key, texts) == java_json.dumps({**rest, key: table})


@pytest.mark.slow
@given(_OBJECTS, st.text(max_size=8), _TABLES)
def test_so_they_are_in_a_sealed_document(rest: dict[str, Any], key: str, table: dict[str, Any]) -> None:
    rest.pop("crc32", None)
    if key == "crc32":
        return
    texts = {name: sealed.sealed_text(entry) for name, entry in table.items()}
    written = sealed.seal_with({**rest, key: {}}, key, texts)
    assert written == sealed.seal({**rest, key: table})
    assert sealed.unseal(written) == {**rest, key: table}


@pytest.mark.parametrize("kind", ["local", "watched"])
async def test_one_topic_more_makes_one_text(tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Pure Python in a thread holds up the event loop: with 10,000 topics it did so for 0.3 s at each new one."""
    table: LocalTopicTable | WatchedTopicTable
    if kind == "local":
        table = LocalTopicTable(tmp_path, LocalDisk(), SetClock(5))
    else:
        table = WatchedTopicTable(tmp_path, LocalDisk())
    await table.add([TopicConfig(f"topic-{number}", 4, 4) for number in range(50)])
    made: list[str] = []
    plain = TopicConfig.to_json

    def counted(topic: TopicConfig) -> dict[str, Any]:
        made.append(topic.name)
        return plain(topic)

    monkeypatch.setattr(TopicConfig, "to_json", counted)
    await table.add([TopicConfig("one", 4, 4)])
    assert made == ["one"]
    again = type(table)(tmp_path, LocalDisk(), *([SetClock(6)] if kind == "local" else []))
    assert len(list(again.all())) == 51
