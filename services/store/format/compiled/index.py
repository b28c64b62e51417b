"""The index in machine code: the twins of two functions of index_layout."""

from tandemmq.store.format import index_layout
from tandemmq.store.format.buffers import ReadBuffer, WriteBuffer
from tandemmq.store.format.compiled import index_kernel
from tandemmq.store.format.compiled.addresses import address_of


def entries_before(buffer: ReadBuffer, slots: int, entries: int, physical_offset: int) -> int:
    """See index_layout.entries_before."""
    _check_size(buffer, slots, entries)
    address, _keep = address_of(buffer)
    return index_kernel.entries_before(address, slots, entries, physical_offset)


def rebuild_chains(buffer: WriteBuffer, slots: int, entries: int, count: int) -> int:
    """See index_layout.rebuild_chains."""
    _check_size(buffer, slots, entries)
    address, _keep = address_of(buffer)
    return index_kernel.rebuild_chains(address, slots, min(count, entries))


def _check_size(buffer: ReadBuffer, slots: int, entries: int) -> None:
    size = index_layout.file_size(slots, entries)
    if slots <= 0 or entries <= 0 or len(buffer) < size:
        raise ValueError(f"an index file of {slots} slots and {entries} entries has {size} bytes, not {len(buffer)}")
