"""Tables put together from pages."""

from tandemmq.admin.books.tables import Tables, watched_pages
from tandemmq.metadata.v1 import metadata_pb2 as pb


def apply(tables: Tables, *pages: pb.TablePage) -> None:
    taking = watched_pages()
    total = sum(len(page.topics) + len(page.groups) + len(page.consumer_offsets) + len(page.deleted) for page in pages)
    *before, last = [*pages]
    assert [taking.take(page) for page in before] == [None] * len(before)
    last.total = total
    transfer = taking.take(last)
    assert transfer is not None
    tables.apply(transfer)


def offsets(topic: str, group: str, **queues: int) -> pb.GroupOffsets:
    return pb.GroupOffsets(topic=topic, group=group, offsets={int(name[1:]): at for name, at in queues.items()})


def test_whole_tables_and_changes() -> None:
    tables = Tables()
    topics = [pb.TopicConfig(name=name, perm=6) for name in ("a", "b")]
    apply(
        tables,
        pb.TablePage(table=pb.TOPICS, whole=True, topics=topics[:1], version=pb.DataVersion(counter=1)),
        pb.TablePage(table=pb.TOPICS, whole=True, topics=topics[1:], last=True, version=pb.DataVersion(counter=1)),
    )
    whole = [tables.whole]
    apply(tables, pb.TablePage(table=pb.SUBSCRIPTION_GROUPS, whole=True, last=True))
    whole.append(tables.whole)
    apply(
        tables,
        pb.TablePage(
            table=pb.CONSUMER_OFFSETS,
            whole=True,
            last=True,
            consumer_offsets=[offsets("a", "g", q0=1, q1=2), offsets("b", "g", q0=3), offsets("b", "h", q0=4)],
        ),
    )
    assert [*whole, tables.whole] == [False, False, True], "with all three tables"
    assert tables.groups_in("b") == ["g", "h"]
    assert tables.offsets["g"] == {"a": {0: 1, 1: 2}, "b": {0: 3}}

    change = pb.TablePage(table=pb.TOPICS, last=True, topics=[pb.TopicConfig(name="a", perm=4)], deleted=["b", "no"])
    change.version.counter = 2
    apply(tables, change)
    assert sorted(tables.topics) == ["a"]
    found = tables.topic("a")
    assert found is not None
    assert found.perm == 4
    assert tables.topic("b") is None

    moved = pb.TablePage(table=pb.CONSUMER_OFFSETS, last=True, consumer_offsets=[offsets("a", "g", q0=9)])
    moved.deleted.extend(["b@h", "b@nobody"])
    apply(tables, moved)
    assert tables.offsets == {"g": {"a": {0: 9}, "b": {0: 3}}}

    apply(tables, pb.TablePage(table=pb.CONSUMER_OFFSETS, whole=True, last=True))
    assert tables.offsets == {}


def test_versions_in_their_order() -> None:
    tables = Tables()
    assert not tables.reached(pb.TOPICS, pb.DataVersion(counter=1))
    version = pb.DataVersion(state_version=2, counter=1, timestamp=5)
    apply(tables, pb.TablePage(table=pb.TOPICS, whole=True, last=True, version=version))
    assert tables.reached(pb.TOPICS, version)
    assert tables.reached(pb.TOPICS, pb.DataVersion(state_version=1, counter=99, timestamp=99))
    assert not tables.reached(pb.TOPICS, pb.DataVersion(state_version=2, counter=2))
