"""Tables put together from the pages in which the metadata service sends them. No I/O."""

from collections.abc import Callable, Hashable, Iterable, Mapping
from typing import Any

from tandemmq.common.errors import Kind, TandemError
from tandemmq.metadata.v1 import metadata_pb2 as pb

EntriesOf = Callable[[pb.TablePage], Iterable[tuple[Hashable, Any]]]
"""The entries of a page by their keys, in whatever form the reader keeps them. Raises ValueError."""


class BrokenTransfer(TandemError):
    """A transfer ended before it was complete, or its pages do not fit together. Nothing of it counts."""

    kind = Kind.AWAY


class TableTransfer:
    """A whole table, or changes of one that belong together."""

    __slots__ = ("deleted", "entries", "other_json", "table", "version", "whole")

    def __init__(self, first: pb.TablePage) -> None:
        """Without what the page holds: see `TablePages.take`."""
        self.table = first.table
        self.whole = first.whole
        """Whether it replaces the table."""
        self.version = pb.DataVersion()
        self.version.CopyFrom(first.version)  # a part of a page would keep all of it in memory
        self.entries: dict[Any, Any] = {}
        self.deleted: list[str] = []
        self.other_json = ""
        """What a whole table has beside its entries."""

    def continues(self, page: pb.TablePage) -> bool:
        """Whether a page is one of this transfer."""
        return (page.table, page.whole, page.version) == (self.table, self.whole, self.version)


class TablePages:
    """Takes the pages of one call, of GetTable or Watch, in their order."""

    def __init__(self, tables: Mapping[int, EntriesOf]) -> None:
        """`tables`: those that were asked for."""
        self._tables = tables
        self._open: TableTransfer | None = None

    def take(self, page: pb.TablePage) -> TableTransfer | None:
        """The transfer that ends with this page, or None. Raises BrokenTransfer: the call is of no more use."""
        entries_of = self._tables.get(page.table)
        if entries_of is None:
            raise BrokenTransfer("A page came of a table that nobody asked for.")
        transfer = self._open = self._open or TableTransfer(page)
        if not transfer.continues(page):
            raise BrokenTransfer("A page came that does not belong to the table.")
        try:
            transfer.entries.update(entries_of(page))
        except (ValueError, RecursionError) as error:
            raise BrokenTransfer(f"A page came with an entry that makes no sense: {error}") from None
        transfer.deleted.extend(page.deleted)
        if not page.last:
            return None
        came = len(transfer.entries) + len(transfer.deleted)
        if page.total != came:
            raise BrokenTransfer(f"The table has {page.total:,} entries, and {came:,} came.")
        transfer.other_json = page.other_json
        self._open = None
        return transfer
