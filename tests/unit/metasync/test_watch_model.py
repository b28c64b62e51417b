"""A model of watching: whatever changes, and however seldom a watcher looks, what it has is a table that there was."""

from collections.abc import Mapping
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from tandemmq.metadata.v1 import metadata_pb2 as pb
from tandemmq.metasync.data_version import DataVersion
from tandemmq.metasync.tables import Change, ConfigTable, Content, Stamp, TableKind
from tandemmq.metasync.translate import pages, topic_entry
from tandemmq.metasync.watchers import Hub

names = st.sampled_from([f"topic-{at}" for at in range(6)])
tables = st.dictionaries(names, st.integers(1, 4), max_size=6)


def entries(table: Mapping[str, int]) -> dict[str, Any]:
    return {name: topic_entry(pb.TopicConfig(name=name, read_queues=queues), None) for name, queues in table.items()}


class Watching(RuleBasedStateMachine):
    """One table, two watchers: one that looks often, one that does not."""

    def __init__(self) -> None:
        super().__init__()
        self.table = ConfigTable(TableKind.TOPICS)
        self.hub = Hub()
        self.now = 0
        self.watchers = [self.hub.join([TableKind.TOPICS]) for _ in range(2)]
        self.seen: list[dict[str, int]] = [{}, {}]
        self.versions: dict[int, dict[str, int]] = {0: {}}

    def accept(self, change: Change | None) -> None:
        if change is not None:
            self.table.accept(change)
            self.hub.tell(TableKind.TOPICS, change.keys)
            version = change.content.version
            assert version.counter not in self.versions
            self.versions[version.counter] = self.current()

    def stamp(self) -> Stamp:
        self.now += 1
        return Stamp(self.now, 0)

    def current(self) -> dict[str, int]:
        return {name: entry["readQueueNums"] for name, entry in self.table.content.entries.items()}

    @rule(table=tables)
    def put(self, table: dict[str, int]) -> None:
        self.accept(self.table.put(entries(table), self.stamp()))

    @rule(gone=st.sets(names))
    def delete(self, gone: set[str]) -> None:
        self.accept(self.table.delete(gone, self.stamp()))

    @rule(table=tables, ahead=st.integers(1, 3))
    def take_over(self, table: dict[str, int], ahead: int) -> None:
        version = DataVersion(0, self.stamp().now_ms, self.table.content.version.counter + ahead)
        self.accept(self.table.take_over(Content(version, entries(table)), ["topic-0"]))

    @rule(watcher=st.integers(0, 1))
    def look(self, watcher: int) -> None:
        found = self.watchers[watcher].take()
        if found is None:
            return
        kind, keys = found
        table = self.seen[watcher]
        for page in pages(kind, self.table.content, keys):
            page = pb.TablePage.FromString(page.SerializeToString())
            if page.whole:
                table = {}
            for name in page.deleted:
                table.pop(name, None)
            table |= {topic.name: topic.read_queues for topic in page.topics}
            assert page.version.counter == self.table.content.version.counter
        self.seen[watcher] = table
        assert table == self.current()

    @invariant()
    def what_a_watcher_has_was_a_table_once(self) -> None:
        for table in self.seen:
            assert table in self.versions.values()


Watching.TestCase.settings = settings(max_examples=80, stateful_step_count=30, deadline=None)
test_watching = Watching.TestCase
