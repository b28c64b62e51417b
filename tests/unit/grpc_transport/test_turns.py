"""Turns: who waits to make a large answer, and in which order."""

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
