"""Attempts: how often somebody may guess a secret.

Three budgets must have something left: that of the user at that address, that of the address, and that of all. Each
attempt takes one from each; one that succeeds gives it back. What is left grows with time. So guesses cost little time
of a core, whoever sends them, and somebody who guesses from one address does not lock the user out at another.
"""

import ipaddress
from typing import NamedTuple


class AttemptBudget(NamedTuple):
    """How many attempts at once, and how many more each second."""

    burst: float
    per_second: float


PER_USER_AND_ADDRESS = AttemptBudget(5, 0.1)
PER_ADDRESS = AttemptBudget(10, 0.5)
OF_ALL = AttemptBudget(20, 1.0)

_MOST_KEPT = 10_000


class _Left:
    """What is left of one budget at a time."""

    __slots__ = ("at", "left")

    def __init__(self, left: float, at: float) -> None:
        self.left = left
        self.at = at


class AttemptBudgets:
    """The budgets. Times are seconds of any clock that does not go back."""

    def __init__(self) -> None:
        self._left: dict[tuple[str, ...], _Left] = {}

    def take(self, user: str, address: str, now: float) -> float:
        """Begin an attempt: 0.0, or so many seconds must pass before the next, and nothing was taken."""
        found = [(self._of(key, budget, now), budget) for key, budget in _budgets(user, address)]
        wait = max((1.0 - left.left) / budget.per_second for left, budget in found)
        if wait > 0:
            return wait
        for left, _ in found:
            left.left -= 1
        return 0.0

    def succeeded(self, user: str, address: str, now: float) -> None:
        """An attempt that was begun was right: it counts for nothing."""
        for key, budget in _budgets(user, address):
            left = self._of(key, budget, now)
            left.left = min(budget.burst, left.left + 1)

    def _of(self, key: tuple[str, ...], budget: AttemptBudget, now: float) -> _Left:
        known = self._left.pop(key, None)
        if known is None:
            if len(self._left) >= _MOST_KEPT:
                del self._left[next(iter(self._left))]  # the one that was used longest ago; the greater budgets hold
            known = _Left(budget.burst, now)
        known.left = min(budget.burst, known.left + (now - known.at) * budget.per_second)
        known.at = now
        self._left[key] = known
        return known


def _budgets(user: str, address: str) -> tuple[tuple[tuple[str, ...], AttemptBudget], ...]:
    """The narrowest first: the last are touched last, so they are the last to be forgotten."""
    return ((user, address), PER_USER_AND_ADDRESS), ((address,), PER_ADDRESS), ((), OF_ALL)


def address_of(peer: str) -> str:
    """Whose budget a peer, as gRPC names it, uses: the IPv4 address, or the /64 of an IPv6 address (one customer's)."""
    kind, _, rest = peer.partition(":")
    if kind == "ipv4":
        return rest.rpartition(":")[0]
    if kind == "ipv6":
        text = rest.replace("%5B", "[").replace("%5D", "]").rpartition(":")[0].strip("[]").partition("%")[0]
        try:
            return str(ipaddress.IPv6Network((text, 64), strict=False).network_address)
        except ValueError:
            return text
    return peer
