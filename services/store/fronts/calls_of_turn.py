"""CallsOfTurn: calls of one turn of the event loop that ask for the same, which are looked after together at its end.

What all of them would do over and over, such as a look for messages, is done once in a turn, however many they are.
"""

import logging
from collections.abc import Callable, Hashable, Iterable
from typing import Any, Generic, NamedTuple, TypeVar

from tandemmq.common.grpc_transport import DirectCall
from tandemmq.store.broker.send import new_tuple
from tandemmq.store.delivery.port import JournalTurns

log = logging.getLogger(__name__)

Asked = TypeVar("Asked", bound=Hashable)
"""What is asked for."""
Said = TypeVar("Said")
"""What a call says beside that."""


class KeptCall(NamedTuple, Generic[Said]):
    """A call that is held until the end of its turn."""

    call: DirectCall
    request: bytes
    begun: float
    """By `time.perf_counter`."""
    said: Said


class CallsOfTurn(Generic[Asked, Said]):
    """Those of one method."""

    def __init__(self, journal: JournalTurns, together: Callable[[Asked, list[KeptCall[Said]]], None]) -> None:
        """`together` answers some calls, holds them on, or hands them over. Where it raises, all are handed over."""
        self._journal = journal
        self._together = together
        self.kept: dict[Asked, list[KeptCall[Said]]] = {}
        """The calls that are held, by what they ask for. It stays the same object: the compiled core adds to it."""

    def kept_for(self, asked: Asked) -> list[KeptCall[Said]] | None:
        """Where the calls of this turn are kept that ask for this; None where the handler is to have them.

        That is while the journal cannot be written: its turns come late then.
        """
        kept = self.kept.get(asked)
        if kept is None and self._journal.failure is None:
            if not self.kept:
                self._journal.at_the_end_of_the_turn(self._end)
            kept = self.kept[asked] = []
        return kept

    def again(self, asked: Asked, some: list[KeptCall[Said]]) -> None:
        """Keep calls until the end of the next turn, where they had no part in what the others got."""
        kept = self.kept_for(asked)
        if kept is not None:
            kept += some
        else:
            hand_over(some)

    def keep(self, asked: Asked, call: DirectCall, request: bytes, begun: float, said: Said) -> bool:
        """Hold a call until the end of this turn; False: the handler is to have it."""
        kept = self.kept_for(asked)
        if kept is None:
            return False
        kept.append(new_tuple(KeptCall, (call, request, begun, said)))
        return True

    def _end(self) -> None:
        turn = self.kept.copy()
        self.kept.clear()
        for asked, kept in turn.items():
            if not kept:
                continue
            try:
                self._together(asked, kept)
            except Exception:  # the others wait too
                log.exception("calls of a turn were not answered together")
                hand_over(kept)


def hand_over(some: Iterable[KeptCall[Any]]) -> None:
    """Have the handler answer calls."""
    for one in some:
        one.call.hand_over(one.request)
