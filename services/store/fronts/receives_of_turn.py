"""ReceivesOfTurn: receives that are answered in the turn in which they come, those that ask for the same together.

They are answered by one look for messages at the end of the turn. What must wait, or has a large answer, is the
handler's.
"""

import logging
import time
from collections.abc import Callable
from itertools import compress
from math import inf

from tandemmq.common.errors import TandemError
from tandemmq.common.grpc_transport import HELD, DirectCall, HeldCall
from tandemmq.store.delivery.port import AtOncePort, Batch, JournalTurns, Wish
from tandemmq.store.fronts.calls_of_turn import CallsOfTurn, KeptCall, hand_over
from tandemmq.store.fronts.held_receives import HeldReceives, ReceiveCore, ReceiveTimes

log = logging.getLogger(__name__)

LARGE_BYTES = 64 << 10
"""Larger answers wait for their turn: the handlers make them."""
LATER_SECONDS = 1.0
"""So long the handlers have what had a large answer."""


class PlainWish:
    """What receives ask for that can be answered at once; one object for all that ask for the same."""

    __slots__ = ("answer", "later", "long_polling", "wish")

    def __init__(self, wish: Wish, answer: Callable[[Batch], bytes | None], *, long_polling: bool) -> None:
        """`answer` encodes messages; None: the handler does. `long_polling`: whether the receives would wait."""
        self.wish = wish
        self.answer = answer
        self.long_polling = long_polling
        self.later = inf if wish.attempt_id or wish.renew else 0.0
        """Until then it is the handler's, by `time.perf_counter`."""


class ReceivesOfTurn:
    """Those of one method."""

    def __init__(self, method: str, delivery: AtOncePort, journal: JournalTurns, times: ReceiveTimes) -> None:
        self._delivery = delivery
        self._held = HeldReceives(method, journal, times)
        self._same = CallsOfTurn[PlainWish, None](journal, self._give_together)
        self.kept, self.kept_for = self._same.kept, self._same.kept_for
        """See `CallsOfTurn`."""

    def use_core(self, core: ReceiveCore) -> None:
        """Have the compiled core give the answers of a turn."""
        self._held.core = core

    def __call__(self, plain: PlainWish, message: bytes, call: DirectCall, begun: float) -> HeldCall | None:
        """HELD: messages may be given out at the end of the turn; None: nothing is, the handler answers.

        `message`: the bytes of the request; `begun`: of `time.perf_counter`.
        """
        if begun < plain.later or not call.has_room:
            return None
        return HELD if self._same.keep(plain, call, message, begun, None) else None

    def _give(self, plain: PlainWish, batch: Batch, call: DirectCall, message: bytes, begun: float) -> bool:
        """Answer a call when the journal is written; False: the handler is to, and its messages are there again."""
        try:
            answer = plain.answer(batch)
        except BaseException:
            batch.release()
            raise
        if answer is None or len(answer) > LARGE_BYTES:
            plain.later = begun + LATER_SECONDS
        if answer is None:
            batch.release()
            return False
        self._held.hold(call, message, answer, batch, begun, long_polling=plain.long_polling)
        return True

    def _give_together(self, plain: PlainWish, kept: list[KeptCall[None]]) -> None:
        """Give each call its messages; the handler has them where there are none at all, answers are large, or wait."""
        core = self._held.core
        if core is None or not core.all_wait(kept):
            there = [one for one in kept if not one.call.gone]
            full = [not one.call.has_room for one in there]  # their peers do not read what they got in earlier turns
            hand_over(compress(there, full))
            kept = [one for one, is_full in zip(there, full, strict=True) if not is_full]
        try:
            batches = self._delivery.receive_at_once(plain.wish, len(kept)) if kept else ()
        except TandemError:
            batches = ()
        except Exception:  # some are handed over already
            log.exception("a look for the receives of a turn failed")
            batches = ()
        polling = plain.long_polling
        held = self._held.hold_first(kept, batches, plain.answer, largest=LARGE_BYTES, long_polling=polling)
        for (call, request, begun, _), batch in zip(kept[held:], batches[held:], strict=False):
            try:
                given = self._give(plain, batch, call, request, begun)
            except Exception:  # the others have theirs
                log.exception("messages were given out, and not answered with")
                given = False
            if not given:
                call.hand_over(request)
        rest = kept[len(batches) :]
        if not batches or time.perf_counter() < plain.later:
            hand_over(rest)
        elif rest:
            self._same.again(plain, rest)
