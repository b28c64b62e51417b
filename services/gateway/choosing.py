"""Which broker a message goes to: rendezvous hashing, so that all gateways agree and a new broker moves little. No I/O.

A message of a message group always goes to the same broker of all that are configured, or to none. Any other goes by
its id: a client that sends again what it has heard nothing of meets the broker that can recognize it.
"""

import hashlib
from collections.abc import Collection

from tandemmq.store.format import properties as names


def chosen(key: str, brokers: Collection[str]) -> str:
    """The broker for a key, whatever the order of `brokers`, of which there is at least one."""
    if len(brokers) == 1:
        return next(iter(brokers))
    return max(brokers, key=lambda broker: (_weight(key, broker), broker))


def message_group(properties: dict[str, str]) -> str | None:
    """The message group of a message, if it has one."""
    return properties.get(names.SHARDING_KEY)


def message_id(properties: dict[str, str]) -> str:
    """What a message that belongs to no group is chosen a broker by."""
    return properties.get(names.UNIQ_KEY, "")


def _weight(key: str, broker: str) -> bytes:
    return hashlib.blake2b(f"{broker}\0{key}".encode(errors="surrogatepass"), digest_size=8).digest()
