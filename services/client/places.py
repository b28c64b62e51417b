"""Places: the addresses of a broker's stores, and at which of them the next call is made. No I/O."""

import time
from collections.abc import Callable, Collection, Sequence

DOUBT_SECONDS = 30.0
"""For so long an address is not believed that a store has told and that did not answer."""


def addresses_of(given: str | Sequence[str]) -> tuple[str, ...]:
    """`host:port`, or several, in a sequence or with commas between. Raises ValueError."""
    found = given.split(",") if isinstance(given, str) else list(given)
    addresses = tuple(one.strip() for one in found if one.strip())
    for address in addresses or ("",):
        host, _, port = address.rpartition(":")
        if not host or not port.isdecimal():
            raise ValueError(f"{address!r} is no address of a store: write HOST:PORT, as in 127.0.0.1:8081")
    return addresses


class Places:
    """What the caller has given, and the master that a store has told of, if it is none of these."""

    def __init__(self, given: Sequence[str], clock: Callable[[], float] = time.monotonic) -> None:
        """`given`: one address at least."""
        self._given = tuple(given)
        self._told = ""
        self._doubted: dict[str, float] = {}
        self._clock = clock
        self.current = self._given[0]
        """The address that answered last, or is tried next."""

    @property
    def all(self) -> tuple[str, ...]:
        """Every address that may be tried."""
        return (*self._given, self._told) if self._told else self._given

    def lead_to(self, leader: str) -> bool:
        """A store says that this is the master: it is tried next. False where that is not believed, or not known."""
        if not leader or self._clock() < self._doubted.get(leader, 0.0):
            return False
        if leader not in self._given:
            self._told = leader
        self.current = leader
        return True

    def leave(self, address: str, *, silent: bool) -> None:
        """What an address says, or that it is `silent`, is of no use: the next one is tried."""
        everywhere = self.all
        if self.current == address:
            at = everywhere.index(address) if address in everywhere else -1
            self.current = everywhere[(at + 1) % len(everywhere)]
        if silent and address == self._told:
            self._told = ""
            self._doubted = {address: self._clock() + DOUBT_SECONDS}

    def pass_over(self, tried: Collection[str]) -> bool:
        """Go on to an address that is not among those `tried`. False: there is none, and nothing changes."""
        everywhere = self.all
        at = everywhere.index(self.current) if self.current in everywhere else 0
        following = (one for one in (*everywhere[at:], *everywhere[:at]) if one not in tried)
        left = next(following, "")
        self.current = left or self.current
        return bool(left)
