"""PassedAcknowledgements: the short way of AckMessage in a gateway: those of one turn for one group and topic together.

A call is held until its answer has come. Where the link is lost, or the store refuses, the handler asks again: a handle
may be given back twice.
"""

import asyncio
import time
from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

from google.protobuf.message import DecodeError

from tandemmq.broker.v1 import broker_pb2
from tandemmq.common.errors import TandemError
from tandemmq.common.grpc_transport import HELD, CallFailure, DirectCall, HeldCall
from tandemmq.common.metrics.call_metrics import CallMetrics
from tandemmq.gateway import questions
from tandemmq.gateway.cluster import BrokerCluster
from tandemmq.gateway.questions import Answer, Question
from tandemmq.store.delivery.port import Outcome
from tandemmq.store.fronts.rocketmq5.acks import AckCore, Acks
from tandemmq.store.fronts.rocketmq5.caller import caller_of
from tandemmq.store.fronts.rocketmq5.names import group_name, topic_name
from tandemmq.store.fronts.rocketmq5.receipts import MOST_ENTRIES, Receipts


class HandlesAt(NamedTuple):
    """Whose handles are given back."""

    broker: str
    group: str
    topic: str
    in_time: bool


class PassedAck(NamedTuple):
    """A call that waits for its answer."""

    call: DirectCall
    request: bytes
    begun: float
    acks: Acks
    own: Sequence[str]
    """Its handles, as the broker calls them."""


class PassedAcknowledgements:
    """See the module; it is a `grpc_transport.Direct`."""

    def __init__(self, cluster: BrokerCluster, receipts: Receipts, times: CallMetrics, core: AckCore) -> None:
        self._cluster = cluster
        self._receipts = receipts
        self._times = times
        self._core = core
        self._turn: dict[HandlesAt, list[PassedAck]] = {}

    def __call__(self, message: bytes, call: DirectCall) -> HeldCall | None:
        """HELD: its handles are passed on at the end of this turn; None: the handler answers."""
        begun = time.perf_counter()
        try:
            acks = Acks(message, self._core)
            caller = caller_of(call).named()
            in_time = self._receipts.in_time(acks, caller)
            group, topic = group_name(acks.group, caller.namespace), topic_name(acks.topic, caller.namespace)
            tokens = [self._cluster.tokens.read(handle) for handle in acks.handles]
        except (TandemError, CallFailure, DecodeError):
            return None
        name = tokens[0][0]
        if self._cluster.brokers[name].link_with_room is None or any(broker != name for broker, _ in tokens):
            return None
        if not self._turn:
            asyncio.get_running_loop().call_soon(self._end_turn)
        held = PassedAck(call, message, begun, acks, [own for _, own in tokens])
        self._turn.setdefault(HandlesAt(name, group, topic, in_time), []).append(held)
        return HELD

    def _end_turn(self) -> None:
        turn, self._turn = self._turn, {}
        for asked, calls in turn.items():
            some, size = list[PassedAck](), 0
            for held in calls:
                if size + len(held.own) > MOST_ENTRIES:
                    self._ask(asked, some)
                    some, size = [], 0
                some.append(held)
                size += len(held.own)
            self._ask(asked, some)

    def _ask(self, asked: HandlesAt, calls: Sequence[PassedAck]) -> None:
        link = self._cluster.brokers[asked.broker].link_with_room
        if link is None:
            hand_over(calls)
            return
        handles = [own for held in calls for own in held.own]
        given = broker_pb2.Acknowledge(group=asked.group, topic=asked.topic, handles=handles, in_time=asked.in_time)
        link.pass_on(Question(acknowledge=given), partial(self._heard, calls))

    def _heard(self, calls: Sequence[PassedAck], answer: Answer | None) -> None:
        outcomes = [] if answer is None else questions.outcomes(answer.outcomes)
        if len(outcomes) != sum(len(held.own) for held in calls):
            hand_over(calls)
            return
        now, at = time.perf_counter(), 0
        for call, _, begun, acks, own in calls:
            each = map(Outcome, acks.handles, (one.error for one in outcomes[at : at + len(own)]))
            at += len(own)
            data, outcome = acks.answered(list(each))
            self._times.called("AckMessage", outcome, now - begun)
            call.answer_later(data)


def hand_over(calls: Sequence[PassedAck]) -> None:
    """Have the handler go on with calls."""
    for held in calls:
        held.call.hand_over(held.request)
