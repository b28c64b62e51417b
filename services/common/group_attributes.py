"""The attributes of a group that mean something to this broker, and which values they may have."""

CONSUME_FROM = "consumeFromWhere"
"""Where a new group begins in a topic."""
FROM_FIRST = "CONSUME_FROM_FIRST_OFFSET"
FROM_LAST = "CONSUME_FROM_LAST_OFFSET"

ACK_DURABILITY = "ackDurability"
"""What its acknowledgements wait for."""
PAGE_CACHE = "PAGE_CACHE"
DISK = "DISK"
REPLICAS = "REPLICAS"

KEEP_UNCONSUMED = "keepUnconsumed"
"""``true``: log files are kept while the group has not dealt with what is in them."""

_VALUES = {
    CONSUME_FROM: (FROM_FIRST, FROM_LAST),
    ACK_DURABILITY: (PAGE_CACHE, DISK, REPLICAS),
    KEEP_UNCONSUMED: ("true", "false"),
}


def allowed(name: str, value: str) -> str:
    """Which values an attribute may have, in words; empty where it may have this one, or means nothing here."""
    known = _VALUES.get(name)
    return "" if known is None or value in known else ", ".join(known)
