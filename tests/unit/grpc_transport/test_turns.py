"""Turns: who waits to make a large answer, and in which order."""

import asyncio

import pytest

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


@pytest.mark.parametrize("late", range(5))
async def test_a_turn_goes_to_one_who_waited_or_to_one_who_comes(late: int) -> None:
    """Where each large answer takes longer than a turn may, no turn has two, whenever the third one comes."""
    loop = asyncio.get_running_loop()
    turns, account = Turns(loop, -1.0), Budget(1 << 30).account("owner")
    turn, made = 0, list[int]()

    def next_turn() -> None:
        nonlocal turn
        turn += 1
        if len(made) < 3:
            loop.call_soon(next_turn)

    async def make(after: int) -> None:
        for _ in range(after):
            await asyncio.sleep(0)
        await turns.large(account)
        made.append(turn)

    loop.call_soon(next_turn)
    await asyncio.gather(make(0), make(0), make(late))
    assert len(set(made)) == 3, made
