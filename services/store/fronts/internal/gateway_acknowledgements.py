"""GatewayAcknowledgements: the acknowledgements of a gateway's questions, those of one group and topic together.

All of a turn are answered when the journal is written, and as safe as sends are. What cannot be said at once is left to
`gateway_link`.
"""

from collections.abc import Callable, Sequence
from functools import partial

from tandemmq.broker.v1 import broker_pb2
from tandemmq.common.errors import TandemError
from tandemmq.store.broker.acknowledgement import Acknowledgement
from tandemmq.store.broker.group_transfer import PutStatus
from tandemmq.store.delivery.errors import NotSafe
from tandemmq.store.delivery.port import AtOncePort, JournalTurns, Outcome

Asked = tuple[int, broker_pb2.Acknowledge]
"""The number of a question, and what it asks."""
Said = tuple[Asked, Sequence[Outcome]]


class GatewayAcknowledgements:
    """See the module."""

    def __init__(
        self,
        delivery: AtOncePort,
        journal: JournalTurns,
        acknowledgement: Acknowledgement,
        say: Callable[[int, Sequence[Outcome] | TandemError], None],
        otherwise: Callable[[int, broker_pb2.Acknowledge], None],
    ) -> None:
        """`say` answers a question, `otherwise` looks after it in a task."""
        self._delivery = delivery
        self._journal = journal
        self._acknowledgement = acknowledgement
        self._say = say
        self._otherwise = otherwise
        self._turn: dict[tuple[str, str, bool], list[Asked]] = {}

    def keep(self, number: int, asked: broker_pb2.Acknowledge) -> bool:
        """Keep a question until `end_turn`; False: nothing is noted at present."""
        if self._journal.failure is not None:
            return False
        self._turn.setdefault((asked.group, asked.topic, asked.in_time), []).append((number, asked))
        return True

    def end_turn(self) -> None:
        """Take back the handles."""
        turn, self._turn = self._turn, {}
        noted: list[Said] = []
        for (group, topic, in_time), same in turn.items():
            handles = [handle for _, asked in same for handle in asked.handles]
            try:
                outcomes = self._delivery.acknowledge_at_once(group, topic, handles, in_time=in_time)
            except Exception:  # noqa: BLE001 - the task says what is wrong; the link is for others too
                outcomes = None
            if outcomes is None:
                for number, asked in same:
                    self._otherwise(number, asked)
                continue
            at = 0
            for one in same:
                end = at + len(one[1].handles)
                noted.append((one, outcomes[at:end]))
                at = end
        if noted:
            self._journal.when_written(partial(self._written, noted))

    def _written(self, noted: Sequence[Said], lost: TandemError | None) -> None:
        if lost is None and self._journal.failure is None:
            self._acknowledgement.when_safe(self._journal.end_offset, partial(self._end, noted), wait=True)
            return
        for (number, asked), _ in noted:  # a handle may be given back twice
            self._otherwise(number, asked)

    def _end(self, noted: Sequence[Said], status: PutStatus) -> None:
        for (number, _), outcomes in noted:
            self._say(number, outcomes if status is PutStatus.PUT_OK else NotSafe.noted(status.name))
