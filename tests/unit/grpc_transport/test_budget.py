"""Budget: what is held is bounded, whoever asks, and some is always free for those who hold nothing."""

from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from tandemmq.common.grpc_transport.http2.budget import NEWCOMER_FACTOR, NEXT_TO_NOTHING, Account, Budget

MEBIBYTE = 1 << 20
TOTAL = 100 * MEBIBYTE


def greedy(budget: Budget, owners: int, connections: int, answer: int = MEBIBYTE) -> list[Account]:
    """Connections that take answers as long as they may, in turn."""
    accounts = [budget.account(f"owner {owner}") for owner in range(owners) for _ in range(connections)]
    took = True
    while took:
        took = False
        for account in accounts:
            if account.admits(answer):
                account.settle(account.used + answer)
                took = True
    return accounts


def test_a_connection_alone_may_hold_half() -> None:
    [account] = greedy(Budget(TOTAL), 1, 1)
    assert account.used == TOTAL // 2


def test_connections_of_an_owner_have_the_same() -> None:
    accounts = greedy(Budget(TOTAL), 1, 4)
    assert len({account.used for account in accounts}) == 1
    assert accounts[0].used == TOTAL // 5


@pytest.mark.slow
@given(st.integers(1, 5), st.integers(1, 40))
def test_whoever_comes_finds_room(owners: int, connections: int) -> None:
    """Others may be as greedy as they can: a stranger may have an answer, and some calls besides."""
    budget = Budget(TOTAL)
    greedy(budget, owners, connections, answer=64 << 10)
    newcomer = budget.account("somebody else")
    assert budget.used <= TOTAL
    assert budget.free >= TOTAL // (NEWCOMER_FACTOR * owners + 1) - (64 << 10)
    assert newcomer.admits(min(MEBIBYTE, budget.free))


def test_an_owner_with_many_connections_leaves_room_for_one_with_few() -> None:
    budget = Budget(TOTAL)
    crowd, few = [budget.account("crowd") for _ in range(100)], [budget.account("few") for _ in range(4)]
    for _ in range(1000):
        for account in (*crowd, *few):
            if account.admits(64 << 10):
                account.settle(account.used + (64 << 10))
    held = {name: budget.owner(name).used for name in ("crowd", "few")}
    assert held["few"] / len(few) > 4 * held["crowd"] / len(crowd)
    assert held["few"] > TOTAL // 10


def test_who_holds_nothing_is_let_through_beside_greedy_neighbours() -> None:
    """All come from one address: calls with small answers go on."""
    budget = Budget(TOTAL)
    greedy(budget, 1, 50)
    good = budget.account("owner 0")
    assert good.admits(NEXT_TO_NOTHING)
    assert good.admits(MEBIBYTE), "an answer too: a share of their own is kept for newcomers"


def test_what_is_given_back_is_there_at_once_and_told() -> None:
    budget = Budget(TOTAL)
    accounts = greedy(budget, 1, 3)
    told: list[int] = []
    for number in range(40):
        budget.waiting[number] = lambda number=number: told.append(number)  # type: ignore[misc]
    held = budget.used
    accounts[0].close()
    assert budget.used == held - TOTAL // 4
    assert told == list(range(len(told))), "the first come first"
    assert told
    while budget.waiting:
        budget.tell()
    assert told == list(range(40))


def test_the_user_of_a_connection_takes_it_over() -> None:
    budget = Budget(TOTAL)
    account = budget.account("198.51.100.7")
    account.settle(MEBIBYTE)
    account.belong(("user", "alice"))
    account.belong(("user", "bob"))
    assert account.owner.name == ("user", "alice")
    assert budget.owner(("user", "alice")).used == MEBIBYTE
    assert budget.owner("198.51.100.7").used == 0


@dataclass
class Model:
    """What an account should say."""

    account: Account
    owner: object
    used: int = field(default=0)


class Accounts(RuleBasedStateMachine):
    """Sums are what they are sums of, whatever happens in whatever order."""

    def __init__(self) -> None:
        super().__init__()
        self.budget = Budget(TOTAL)
        self.models: list[Model] = []

    @rule(owner=st.sampled_from(["a", "b", "c"]))
    def come(self, owner: str) -> None:
        self.models.append(Model(self.budget.account(owner), owner))

    @rule(which=st.integers(0), used=st.integers(0, 2 * TOTAL))
    def settle(self, which: int, used: int) -> None:
        if self.models:
            model = self.models[which % len(self.models)]
            model.account.settle(used)
            model.used = used

    @rule(which=st.integers(0), owner=st.sampled_from(["a", "d"]))
    def belong(self, which: int, owner: str) -> None:
        if self.models:
            model = self.models[which % len(self.models)]
            if not model.account.named:
                model.owner = owner
            model.account.belong(owner)

    @rule(which=st.integers(0))
    def leave(self, which: int) -> None:
        if self.models:
            self.models.pop(which % len(self.models)).account.close()

    @invariant()
    def sums(self) -> None:
        assert self.budget.used == sum(model.used for model in self.models)
        assert self.budget.tight == (2 * self.budget.used > TOTAL)
        assert self.budget.accounts == sum(model.used > NEXT_TO_NOTHING for model in self.models)
        for name in ("a", "b", "c", "d"):
            mine = [model for model in self.models if model.owner == name]
            known = self.budget._owners.get(name)
            assert (known.used if known else 0) == sum(model.used for model in mine)
            assert (known.connections if known else 0) == len(mine)


TestAccounts = Accounts.TestCase
