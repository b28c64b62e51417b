"""Tokens: receipt handles, transaction ids and recall handles, with the broker that they are of.

A token is ``<tag>.<the broker's own>``; the tag is made of the broker's name, so that all gateways read it alike. No
I/O.
"""

import base64
import hashlib
from collections.abc import Iterable, Mapping

from tandemmq.gateway.errors import UnknownToken

_TAG_BYTES = 6
_SEPARATOR = "."


def tag_of(broker: str) -> str:
    """Eight characters that stand for a broker, good for URLs."""
    return base64.urlsafe_b64encode(hashlib.blake2b(broker.encode(), digest_size=_TAG_BYTES).digest()).decode()


class Tokens:
    """The brokers of a cluster, by what tokens call them."""

    def __init__(self, brokers: Iterable[str]) -> None:
        self._brokers: Mapping[str, str] = {tag_of(name): name for name in brokers}
        self._begins = {name: f"{tag}{_SEPARATOR}" for tag, name in self._brokers.items()}

    def made(self, broker: str, own: str) -> str:
        """The token of what a broker calls `own`."""
        return self._begins[broker] + own

    def begin(self, broker: str) -> str:
        """What all tokens of a broker begin with."""
        return self._begins[broker]

    def read(self, token: str) -> tuple[str, str]:
        """A token's broker, and what that calls it. Raises UnknownToken."""
        tag, separator, own = token.partition(_SEPARATOR)
        broker = self._brokers.get(tag)
        if broker is None or not separator or not own:
            raise UnknownToken("The handle is of no broker that this gateway has.")
        return broker, own

    def names_broker(self, token: str) -> bool:
        """Whether a text is a token of one of these brokers."""
        return _SEPARATOR in token and token.partition(_SEPARATOR)[0] in self._brokers
