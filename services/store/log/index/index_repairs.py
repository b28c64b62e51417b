"""An index that does not fit the log: it is made anew while the store serves.

A query that meets a place that cannot be says so here. Each place is told, and counted, once; one rebuild from the log
covers all that is met until it ends.
"""

import logging

from tandemmq.store.log.parts import StoreParts
from tandemmq.store.log.recovery.restoring import Restoring

log = logging.getLogger(__name__)
_PLACES_MAX = 10_000  # so many are remembered: what a rebuild does not mend must not be rebuilt for ever


class IndexRepairs:
    """The repairs of the index in one store's life."""

    def __init__(self, parts: StoreParts, restoring: Restoring) -> None:
        """Listen to what queries of the index of ``parts`` meet."""
        self._parts = parts
        self._restoring = restoring
        self._told: set[str] = set()
        if parts.index is not None:
            parts.index.suspected = self.suspect

    def suspect(self, place: str, reason: str) -> None:
        """The index does not fit at ``place``: rebuild it, unless that is known."""
        if place in self._told or len(self._told) >= _PLACES_MAX:
            return
        self._told.add(place)
        log.warning("The index does not fit the log, and is made anew from it: %s: %s", place, reason)
        self._parts.observer.found("index", 1)
        self._restoring.restore_index()
