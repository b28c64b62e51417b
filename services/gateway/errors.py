"""What a gateway cannot do, and what brokers have refused."""

from tandemmq.common.errors import Kind, TandemError
from tandemmq.store.broker.errors import StoreStopping


class BrokerAway(TandemError):
    """A broker does not answer at any of its addresses, or no broker does."""

    kind = Kind.AWAY


class LinkLost(TandemError):
    """The link ended before the answer came: what was asked may have been done."""

    kind = Kind.AWAY


class UnknownToken(TandemError):
    """A handle names no broker of this gateway's."""

    kind = Kind.BAD_HANDLE
    remedy = "Give back the handle as it was received, at a gateway that has the same brokers."


class WrongBroker(TandemError):
    """What answers at an address is another broker than the settings say."""

    kind = Kind.MISCONFIGURED


class BrokerRefusal(TandemError):
    """A broker has refused; its kind is the broker's."""


_OF_KIND = {kind: type(f"Refused{kind.name.title()}", (BrokerRefusal,), {"kind": kind}) for kind in Kind}


def refusal_of(kind: str, message: str, remedy: str) -> BrokerRefusal:
    """A broker's refusal. A kind that a newer store has counts as UNNAMED."""
    made: BrokerRefusal = _OF_KIND[Kind.__members__.get(kind, Kind.UNNAMED)](message, remedy=remedy or None)
    return made


def stopping() -> StoreStopping:
    """What a receive is told that cannot wait any more, though nothing is wrong with it."""
    return StoreStopping("There is nobody to receive from at present.", remedy="Receive again.")
