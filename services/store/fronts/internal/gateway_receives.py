"""GatewayReceives: the receives of a gateway's questions that are answered at once, those for the same together.

What has to wait for messages, or is not plain, is left to `gateway_link`.
"""

from collections.abc import Callable, Hashable, Sequence
from functools import partial

from tandemmq.broker.v1 import broker_pb2
from tandemmq.common.errors import TandemError
from tandemmq.store.delivery.port import AtOncePort, Batch, JournalTurns
from tandemmq.store.fronts.internal import gateway_answers as told
from tandemmq.store.fronts.internal.gateway_credit import GatewayCredit

_MOST_OF_TURN = 1 << 20
"""Bytes that are given out in one turn of the loop, and what the last look adds to them; the rest is for the next."""
_MOST_OF_LOOK = 8
"""Receives that are answered by one look for messages: so much may be found before it is counted."""

Asked = tuple[int, broker_pb2.Receive]
"""The number of a question, and what it asks."""
GivenOut = tuple[Asked, broker_pb2.Given, Batch]


class GatewayReceives:
    """See the module."""

    def __init__(
        self,
        delivery: AtOncePort,
        journal: JournalTurns,
        credit: GatewayCredit,
        give: Callable[[int, broker_pb2.Given, Batch], None],
        otherwise: Callable[[int, broker_pb2.Receive], None],
        soon: Callable[[Callable[[], None]], object],
    ) -> None:
        """`give` answers a question with what a batch has, `otherwise` looks after it in a task.

        `soon` calls in the next turn of the loop.
        """
        self._delivery = delivery
        self._journal = journal
        self._credit = credit
        self._give = give
        self._otherwise = otherwise
        self._soon = soon
        self._turn: dict[Hashable, list[Asked]] = {}
        self._noted: dict[int, Batch] = {}
        """By the number of a question: what is given out, until that is written."""

    def keep(self, number: int, asked: broker_pb2.Receive) -> bool:
        """Keep a question until `end_turn`; False: it is not plain."""
        if asked.renew or asked.attempt_id or self._journal.failure is not None:
            return False
        same = (asked.group, asked.topic, asked.queue, asked.expression, asked.sql)
        self._turn.setdefault((same, asked.most, asked.most_bytes, asked.invisible_ms), []).append((number, asked))
        return True

    def give_up(self, number: int) -> None:
        """Nobody waits for a question any more: nothing is given, or it is there again."""
        for same in self._turn.values():
            same[:] = [one for one in same if one[0] != number]
        batch = self._noted.pop(number, None)
        if batch is not None:
            batch.release()

    def end_turn(self) -> None:
        """Give out what there is, as much as a turn may. What was not looked after comes first in the next one."""
        turn, self._turn = self._turn, {}
        looked_after: dict[Hashable, list[Asked]] = {}
        room = _MOST_OF_TURN
        for key, same in turn.items():
            if not same:
                continue
            given, ends = self._batches(same, room)
            room -= sum(answer.bytes for _, answer, _ in given)
            if given:
                self._journal.when_written(partial(self._written, given))
            rest = same[len(given) :]
            if ends:
                for number, asked in rest:
                    self._otherwise(number, asked)
            elif rest:
                (looked_after if given else self._turn)[key] = rest
        self._turn |= looked_after
        if self._turn:
            self._soon(self.end_turn)

    def _batches(self, same: Sequence[Asked], room: int) -> tuple[list[GivenOut], bool]:
        """What there is for the first of several that ask for the same, within the gateway's credit and some bytes.

        And whether there is no more than that.
        """
        given: list[GivenOut] = []
        wish = told.wish(same[0][1])
        while len(given) < len(same):
            if room <= 0:
                return given, False
            calls = min(len(same) - len(given), self._credit.times(wish.most_bytes), _MOST_OF_LOOK)
            try:
                batches = self._delivery.receive_at_once(wish, calls) if calls else ()
            except Exception:  # noqa: BLE001 - the task says what is wrong; the link is for others too
                batches = ()
            for batch in batches:
                answer = told.given(batch)
                self._credit.taken(answer.bytes)
                room -= answer.bytes
                self._noted[same[len(given)][0]] = batch
                given.append((same[len(given)], answer, batch))
            if not calls or len(batches) < calls:
                break
        return given, True

    def _written(self, given: Sequence[GivenOut], lost: TandemError | None) -> None:
        """What was given out is in the log, or the log does not take it."""
        for (number, asked), answer, batch in given:
            wanted = self._noted.pop(number, None) is not None
            if wanted and lost is None:
                self._give(number, answer, batch)
                continue
            self._credit.given_back(answer.bytes)
            if wanted:
                self._otherwise(number, asked)
