"""Turns: who waits to be read on or to make a large answer, and in which order."""

import asyncio

from tandemmq.common.grpc_transport.aio.turns import Turns
from tandemmq.common.grpc_transport.http2.budget import Account, Budget


async def test_whose_owner_holds_least_comes_first_then_who_holds_least_then_who_came_first() -> None:
    budget = Budget(1 << 30)
    turns = Turns(asyncio.get_running_loop(), -1.0)  # each turn is over as soon as a large answer was made in it
    order: list[str] = []

    def account(owner: str, used: int) -> Account:
        made = budget.account(owner)
        made.settle(used)
        return made

    async def make(name: str, of: Account) -> None:
        await turns.large(of)
        order.append(name)

    full, empty, late = account("greedy", 1 << 20), account("greedy", 0), account("greedy", 0)
    modest = account("modest", 1 << 10)
    waiting = (("first", full), ("full", full), ("empty", empty), ("late", late), ("modest", modest))
    await asyncio.gather(*(make(name, of) for name, of in waiting))
    assert order == ["first", "modest", "empty", "late", "full"]


class Line:
    """Connections that lag, each for so many slices; which of them went on in each turn of the loop."""

    def __init__(self, seconds: float, **slices: int) -> None:
        self.turns = Turns(asyncio.get_running_loop(), seconds)
        self.left = slices
        self.costs: dict[str, float] = {}
        self.went: list[str] = []
        for name in slices:
            self.join(name)

    def join(self, name: str) -> None:
        assert self.turns.lag(name, lambda _ends: self.go_on(name))

    def go_on(self, name: str) -> float:
        self.went[-1] += name
        self.left[name] -= 1
        if self.left[name]:
            self.join(name)
        return self.costs.get(name, 0.0)

    async def run(self) -> list[str]:
        while any(self.turns.lags(name) for name in self.left):
            self.went.append("")
            await asyncio.sleep(0)
        return self.went


async def test_who_lags_goes_on_in_turn_for_as_long_as_a_turn_lasts() -> None:
    assert await Line(-1.0, a=2, b=1, c=2).run() == ["a", "b", "c", "a", "c"]
    assert await Line(1e9, a=2, b=1, c=2).run() == ["abc", "ac"]


async def test_what_was_begun_takes_time_from_those_behind() -> None:
    line = Line(1e9, a=2, b=1, c=1)
    line.costs["a"] = 2e9
    assert await line.run() == ["a", "bca"]


async def test_who_is_gone_does_not_go_on_and_a_failure_stops_nobody_else() -> None:
    line = Line(1e9, a=1, b=1, c=1)
    line.turns.leave("b")
    assert not line.turns.lag("a", lambda _ends: 0.0), "it is in the line"
    del line.left["a"]  # it fails
    failures: list[object] = []
    asyncio.get_running_loop().set_exception_handler(lambda _loop, context: failures.append(context["exception"]))
    assert await line.run() == ["a", "c"]
    assert [type(failure) for failure in failures] == [KeyError]
