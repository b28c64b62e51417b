"""Budget: the bytes that a server holds for its peers, all connections together, and who may hold more of them.

Each connection has an Account and says how much it holds whenever that has changed. An account belongs to an owner: the
user that its calls are made for, or the address that it comes from.

Fairness is that of switches which share one memory (dynamic thresholds, Choudhury and Hahne): what one may hold is a
multiple of what is free. Few that are greedy may have much, many may have little each, and some always stays free for
those who hold nothing. Nobody need be looked for, so a decision costs the same with ten connections and ten thousand.
"""

from collections.abc import Callable, Hashable
from itertools import islice

OWNER_FACTOR = 4
"""An owner may hold so many times what is free: four fifths of everything at most."""
NEWCOMER_FACTOR = 8
"""And so many times if the connection that asks holds next to nothing: its neighbours must not shut it out."""
NEXT_TO_NOTHING = 64 << 10
"""Bytes. Who holds no more has nothing to give back."""
CONNECTION_COST = 8 << 10
"""Bytes that a connection costs which does nothing."""
STREAM_COST = 4 << 10
"""And a stream that is open, its call and its head."""
_RESERVE = 8
"""This part of the budget is kept besides for small calls of those who hold next to nothing."""
_TOLD_AT_ONCE = 64
"""Of those who wait: each look costs something, and not all will find room."""


class Budget:
    """What is held, of how much."""

    __slots__ = ("_owners", "accounts", "tight", "total", "used", "waiting")

    def __init__(self, total: int) -> None:
        """`total`: bytes."""
        self.total = total
        self.used = 0
        self.tight = False
        """Half of it is used: from here on requests are looked at before they are begun."""
        self.accounts = 0
        """Those that hold something."""
        self.waiting: dict[object, Callable[[], None]] = {}
        """Whom to tell, once, when something was given back, in the order of their coming."""
        self._owners: dict[Hashable, Owner] = {}

    @property
    def free(self) -> int:
        """Bytes; never negative."""
        return max(0, self.total - self.used)

    def account(self, owner: Hashable) -> "Account":
        """For a new connection."""
        return Account(self, self.owner(owner))

    def owner(self, name: Hashable) -> "Owner":
        """The owner of that name."""
        found = self._owners.get(name)
        if found is None:
            found = self._owners[name] = Owner(name)
        return found

    def add(self, size: int) -> None:
        """So many bytes more (or less) are held."""
        self.used += size
        self.tight = 2 * self.used > self.total
        if size < 0 and self.waiting:
            self.tell()

    def tell(self) -> None:
        """Tell the first of those who wait to look again; who finds no room goes to the end of the line."""
        for who in list(islice(self.waiting, _TOLD_AT_ONCE)):
            self.waiting.pop(who)()

    def left(self, owner: "Owner") -> None:
        """A connection of this owner has gone."""
        owner.connections -= 1
        if not owner.connections:
            self._owners.pop(owner.name, None)


class Owner:
    """Connections that share."""

    __slots__ = ("connections", "name", "used")

    def __init__(self, name: Hashable) -> None:
        self.name = name
        self.used = 0
        """Bytes that its connections hold."""
        self.connections = 0


class Account:
    """What one connection holds."""

    __slots__ = ("_budget", "closed", "named", "owner", "used")

    def __init__(self, budget: Budget, owner: Owner) -> None:
        self._budget = budget
        self.owner = owner
        owner.connections += 1
        self.used = 0
        """Bytes."""
        self.named = False
        """Its owner is a user, and no longer an address."""
        self.closed = False

    def settle(self, used: int) -> None:
        """This much is held now."""
        change = used - self.used
        if not change or self.closed:
            return
        budget = self._budget
        budget.accounts += (used > NEXT_TO_NOTHING) - (self.used > NEXT_TO_NOTHING)
        self.used = used
        self.owner.used += change
        budget.add(change)

    def admits(self, size: int) -> bool:
        """Whether so many bytes more may be held."""
        budget = self._budget
        free = budget.free
        if self.used <= NEXT_TO_NOTHING:
            if size <= NEXT_TO_NOTHING:
                return budget.used <= budget.total + budget.total // _RESERVE
            return size <= free and self.owner.used + size <= NEWCOMER_FACTOR * free
        return self.used + size <= free and self.owner.used + size <= OWNER_FACTOR * free

    @property
    def greedy(self) -> bool:
        """It holds at least half as much as those that hold something do on average."""
        budget = self._budget
        return self.used > NEXT_TO_NOTHING and 2 * self.used * budget.accounts >= budget.used

    def belong(self, name: Hashable) -> None:
        """It is known now who uses the connection; the first one who is named stays."""
        if self.named or self.closed:
            return
        self.named = True
        before, self.owner = self.owner, self._budget.owner(name)
        self.owner.connections += 1
        self.owner.used += self.used
        before.used -= self.used
        self._budget.left(before)

    def close(self) -> None:
        """The connection is gone, and what it held with it; handlers that still run change nothing any more."""
        self.settle(0)
        self.closed = True
        self._budget.left(self.owner)
