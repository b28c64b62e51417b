"""Receives and acknowledgements of a gateway that are looked after together: what becomes of those that are not."""

import asyncio
from collections.abc import Callable, Sequence
from typing import Any, cast

from tandemmq.broker.v1 import broker_pb2
from tandemmq.common.errors import TandemError
from tandemmq.store.delivery.port import Batch, GivenMessage, Outcome, Wish
from tandemmq.store.fronts.internal.gateway_acknowledgements import GatewayAcknowledgements
from tandemmq.store.fronts.internal.gateway_credit import GatewayCredit
from tandemmq.store.fronts.internal.gateway_receives import GatewayReceives

RECORD = bytes(100)
LARGE = bytes(300 << 10)


class OneMessage:
    """A batch."""

    def __init__(self, record: bytes = RECORD) -> None:
        self.messages = [GivenMessage("orders", record, 1, "h", 9)]
        self.released = 0

    def sent(self, connected: Callable[[], bool]) -> None:
        raise AssertionError("nobody has it")

    def release(self) -> None:
        self.released += 1


class Broker:
    """Delivery and its journal: what is asked for `broken` fails in a way that nobody has foreseen."""

    def __init__(self) -> None:
        self.failure: TandemError | None = None
        self.end_offset = 0
        self.batches: list[OneMessage] = []
        self.told: list[Callable[[TandemError | None], None]] = []

    def receive_at_once(self, wish: Wish, calls: int = 1) -> Sequence[Batch]:
        if wish.topic == "broken":
            raise ValueError("nobody has foreseen it")
        batch = OneMessage()
        self.batches.append(batch)
        return [batch]

    def acknowledge_at_once(
        self, group: str, topic: str, handles: Sequence[str], *, in_time: bool = False
    ) -> list[Outcome] | None:
        if topic == "broken":
            raise ValueError("nobody has foreseen it")
        return [Outcome(one, None) for one in handles]

    def at_the_end_of_the_turn(self, work: Callable[[], None]) -> None:
        raise AssertionError("it is the link that ends a turn")

    def when_written(self, told: Callable[[TandemError | None], None]) -> None:
        self.told.append(told)

    def written(self) -> None:
        told, self.told = self.told, []
        for tell in told:
            tell(None)


def receive(topic: str) -> broker_pb2.Receive:
    return broker_pb2.Receive(group="g", topic=topic, queue=-1, expression="*", most=1, most_bytes=100)


def never(_end_turn: Callable[[], None]) -> None:
    raise AssertionError("all is done in this turn")


async def test_credit_for_what_nobody_wants_any_more_goes_to_who_waits_for_it() -> None:
    broker, credit = Broker(), GatewayCredit()
    given: list[int] = []
    receives = GatewayReceives(broker, broker, credit, lambda number, *_: given.append(number), lambda *_: None, never)
    credit.add(100)
    assert receives.keep(1, receive("orders"))
    receives.end_turn()
    waiting = asyncio.create_task(credit.room(100))
    await asyncio.sleep(0)
    receives.give_up(1)
    broker.written()
    async with asyncio.timeout(10):
        await waiting
    assert (given, [one.released for one in broker.batches]) == ([], [1])


def test_a_fault_with_some_receives_leaves_the_others() -> None:
    broker, credit = Broker(), GatewayCredit()
    given: list[int] = []
    later: list[int] = []
    receives = GatewayReceives(
        broker, broker, credit, lambda number, *_: given.append(number), lambda number, _: later.append(number), never
    )
    credit.add(1_000)
    for number, topic in enumerate(("broken", "orders", "broken")):
        assert receives.keep(number, receive(topic))
    receives.end_turn()
    broker.written()
    assert (given, later) == ([1], [0, 2])


class Large(Broker):
    """It always has messages, and large ones."""

    def receive_at_once(self, wish: Wish, calls: int = 1) -> Sequence[Batch]:
        made = [OneMessage(LARGE) for _ in range(calls)]
        self.batches += made
        return made


def test_a_turn_gives_out_so_many_bytes_and_the_next_one_goes_on() -> None:
    """All of one gateway's receives at once would be up to its credit, 64 MiB, in one turn of the store's loop."""
    broker, credit = Large(), GatewayCredit()
    given: list[int] = []
    later: list[int] = []
    soon: list[Callable[[], None]] = []
    receives = GatewayReceives(
        broker, broker, credit, lambda number, *_: given.append(number), lambda number, _: later.append(number),
        soon.append,
    )  # fmt: skip
    credit.add(64 << 20)
    for number in range(30):
        assert receives.keep(number, receive("orders" if number % 2 else "payments"))
    receives.end_turn()
    turns = [len(broker.batches)]
    receives.give_up(29)
    while soon:
        soon.pop()()
        turns.append(len(broker.batches) - sum(turns))
    broker.written()
    assert max(turns) * len(LARGE) <= (1 << 20) + 8 * len(LARGE)
    assert sorted(given) == [*range(29)]
    assert not later


def test_a_group_that_always_asks_for_more_than_a_turn_gives_does_not_keep_others_from_their_turn() -> None:
    broker, credit = Large(), GatewayCredit()
    given: list[int] = []
    soon: list[Callable[[], None]] = []
    receives = GatewayReceives(
        broker, broker, credit, lambda number, *_: given.append(number), lambda *_: None, soon.append
    )
    credit.add(64 << 20)
    for number in range(30):
        assert receives.keep(number, receive("orders"))
    assert receives.keep(1_000, receive("payments"))
    receives.end_turn()
    asked = 30
    for _ in range(3):
        broker.written()
        while asked < 30 + len(given):  # who has an answer asks for the next one
            assert receives.keep(asked, receive("orders"))
            asked += 1
        soon.pop()()
    broker.written()
    assert 1_000 in given


def test_a_fault_with_some_acknowledgements_leaves_the_others() -> None:
    broker = Broker()
    safe: list[int] = []
    later: list[int] = []

    class Safe:
        def when_safe(self, offset: int, told: Callable[..., None], *, wait: bool) -> None:
            safe.append(offset)

    acknowledgements = GatewayAcknowledgements(
        broker, broker, cast(Any, Safe()), lambda *_: None, lambda number, _: later.append(number)
    )
    for number, topic in enumerate(("broken", "orders", "broken")):
        assert acknowledgements.keep(number, broker_pb2.Acknowledge(group="g", topic=topic, handles=["h"]))
    acknowledgements.end_turn()
    broker.written()
    assert (safe, later) == ([0], [0, 2])
