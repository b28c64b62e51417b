"""Pages put together: whole transfers as they were sent, or none."""

from collections.abc import Iterator
from itertools import pairwise
from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tandemmq.metadata.transfers import BrokenTransfer, EntriesOf, TablePages, TableTransfer
from tandemmq.metadata.v1 import metadata_pb2 as pb

TABLES: dict[int, EntriesOf] = {
    pb.TOPICS: lambda page: ((one.name, one.perm) for one in page.topics),
    pb.SUBSCRIPTION_GROUPS: lambda page: ((one.name, one.retry_queues) for one in page.groups),
}


class Sent(NamedTuple):
    table: int
    whole: bool
    counter: int
    entries: dict[str, int]
    deleted: list[str]
    other_json: str


def seen(transfer: TableTransfer) -> Sent:
    version = transfer.version.counter
    return Sent(
        transfer.table, transfer.whole, version, transfer.entries, sorted(transfer.deleted), transfer.other_json
    )


def pages_of(sent: Sent, cuts: set[int]) -> Iterator[pb.TablePage]:
    items: list[tuple[str, int | None]] = [*sent.entries.items(), *((name, None) for name in sent.deleted)]
    bounds = sorted({0, len(items), *(cut for cut in cuts if cut < len(items))})
    for begin, end in pairwise(bounds) if items else [(0, 0)]:
        page = pb.TablePage(table=sent.table, whole=sent.whole, version=pb.DataVersion(counter=sent.counter))  # type: ignore[arg-type]
        for name, value in items[begin:end]:
            if value is None:
                page.deleted.append(name)
            elif sent.table == pb.TOPICS:
                page.topics.append(pb.TopicConfig(name=name, perm=value))
            else:
                page.groups.append(pb.SubscriptionGroupConfig(name=name, retry_queues=value))
        if end == len(items):
            page.last, page.total, page.other_json = True, len(items), sent.other_json
        yield pb.TablePage.FromString(page.SerializeToString())


@st.composite
def transfers(draw: st.DrawFn) -> list[Sent]:
    made = []
    for counter in range(draw(st.integers(1, 4))):
        entries = draw(st.dictionaries(st.text("abcd", min_size=1, max_size=2), st.integers(0, 7), max_size=8))
        names = draw(st.sets(st.text("xyz", min_size=1, max_size=2), max_size=3))
        whole = draw(st.booleans())
        table = draw(st.sampled_from(sorted(TABLES)))
        made.append(Sent(table, whole, counter, entries, [] if whole else sorted(names), '{"a":1}' if whole else ""))
    return made


cuts = st.sets(st.integers(1, 10))


@given(transfers(), cuts)
def test_what_was_sent_comes_out(sent: list[Sent], cuts: set[int]) -> None:
    pages = TablePages(TABLES)
    came = [pages.take(page) for one in sent for page in pages_of(one, cuts)]
    assert [seen(one) for one in came if one is not None] == sent


@given(transfers(), cuts, st.data())
def test_pages_that_are_lost_doubled_or_moved_never_make_another_table(
    sent: list[Sent], cuts: set[int], data: Any
) -> None:
    stream = [page for one in sent for page in pages_of(one, cuts)]
    at = data.draw(st.integers(0, len(stream) - 1))
    page = stream.pop(at)
    for _ in range(data.draw(st.integers(0, 2))):
        stream.insert(data.draw(st.integers(0, len(stream))), page)
    pages, came = TablePages(TABLES), []
    try:
        for page in stream:
            transfer = pages.take(page)
            came += [] if transfer is None else [seen(transfer)]
    except BrokenTransfer:
        pass
    assert all(one in sent for one in came)


def page(*names: str, **fields: Any) -> pb.TablePage:
    made = pb.TablePage(table=pb.TOPICS, version=pb.DataVersion(counter=1), whole=True)
    made.topics.extend(pb.TopicConfig(name=name) for name in names)
    made.MergeFrom(pb.TablePage(**fields))
    return made


@pytest.mark.parametrize(
    ("second", "why"),
    [
        (page(table=pb.SUBSCRIPTION_GROUPS), "does not belong"),
        (page(version=pb.DataVersion(counter=2)), "does not belong"),
        (page(table=pb.DELAY_OFFSETS), "nobody asked for"),
        (page("b", last=True, total=3), "3 entries, and 2 came"),
        (page("a", last=True, total=2), "2 entries, and 1 came"),
        (page(last=True, total=1, deleted=["x"]), "1 entries, and 2 came"),
    ],
)
def test_pages_that_do_not_fit_together(second: pb.TablePage, why: str) -> None:
    pages = TablePages(TABLES)
    assert pages.take(page("a")) is None
    with pytest.raises(BrokenTransfer, match=why):
        pages.take(second)


def test_an_entry_that_its_reader_cannot_read() -> None:
    def refuse(_page: pb.TablePage) -> Any:
        raise ValueError("it is none")

    with pytest.raises(BrokenTransfer, match="makes no sense: it is none"):
        TablePages({pb.TOPICS: refuse}).take(page("a"))
