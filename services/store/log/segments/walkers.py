"""Which walker to use: the compiled one is many times faster.

``auto`` loads it when there is enough work to be worth it.
"""

import logging
from typing import Any, Protocol

from tandemmq.store.format import index_layout
from tandemmq.store.format.batch import BatchWriter, python_batch_writer
from tandemmq.store.format.walker import Walker, python_walker

log = logging.getLogger(__name__)

# Pure Python walks 0.05-0.2 GB/s; below so much work, loading the compiled walker takes longer than it saves.
WORTH_LOADING = 16 << 20


class IndexTools(Protocol):
    """Work on a whole index file; `tandemmq.store.format.index_layout` says what each does."""

    def entries_before(self, buffer: Any, slots: int, entries: int, physical_offset: int) -> int:
        """Number of the first entry that is damaged, missing or at or after ``physical_offset``."""
        ...

    def rebuild_chains(self, buffer: Any, slots: int, entries: int, count: int) -> int:
        """Link entries 1 … ``count`` - 1 anew; gives the number of slots in use."""
        ...


# So many entries are worth loading the compiled tools.
_MANY_ENTRIES = 200_000


class Walkers:
    """Gives the walker for a job of a given size. ``mode`` is ``auto``, ``always`` or ``never``."""

    def __init__(self, mode: str = "auto") -> None:
        """Load the compiled walker now if ``mode`` is ``always``."""
        self._mode = mode
        self._python = python_walker()
        self._compiled: Walker | None = None
        self._compiled_writer: BatchWriter | None = None
        if mode == "always":
            self.load()

    @property
    def loaded(self) -> bool:
        """Whether the compiled walker is in memory."""
        return self._compiled is not None

    @property
    def best(self) -> Walker:
        """The fastest walker that is in memory now."""
        return self._compiled or self._python

    def for_bytes(self, amount: int) -> Walker:
        """Give a walker for ``amount`` bytes of log, loading the compiled one if that pays."""
        return self.load() if amount >= WORTH_LOADING else self.best

    def load(self) -> Walker:
        """Load the compiled walker (unless told never to) and give the best there is."""
        if self._compiled is None and self._mode != "never":
            from tandemmq.store.format.walker import compiled_walker

            try:
                self._compiled = compiled_walker()
            except ImportError as error:
                self._mode = "never"
                log.warning("The compiled walker cannot be loaded (%s): large logs are read slowly", error)
        return self.best

    def batch_writer(self) -> BatchWriter:
        """Give the writer of encoded batches that goes with the best walker."""
        if self._compiled is None:
            return python_batch_writer()
        if self._compiled_writer is None:
            from tandemmq.store.format.batch import compiled_batch_writer

            self._compiled_writer = compiled_batch_writer()
        return self._compiled_writer

    def index_tools(self, entries: int) -> IndexTools:
        """Give the tools for an index file with so many entries in use."""
        if entries > _MANY_ENTRIES:
            self.load()
        if self._compiled is None:
            return index_layout
        from tandemmq.store.format.compiled import index

        tools: IndexTools = index
        return tools
