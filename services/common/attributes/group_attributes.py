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

PRIORITY_FACTOR = "priority.factor"
"""Of 100 receives those that look at high priorities first."""

_VALUES = {
    CONSUME_FROM: (FROM_FIRST, FROM_LAST),
    ACK_DURABILITY: (PAGE_CACHE, DISK, REPLICAS),
    KEEP_UNCONSUMED: ("true", "false"),
}


def is_known(name: str) -> bool:
    """Whether it means something to this broker."""
    return name in _VALUES or name == PRIORITY_FACTOR


def allowed(name: str, value: str) -> str:
    """Which values an attribute may have, in words; empty where it may have this one, or means nothing here."""
    if name == PRIORITY_FACTOR:
        right = value.isascii() and value.isdigit() and len(value) <= 3 and int(value) <= 100
        return "" if right else "a number, 0 to 100"
    known = _VALUES.get(name)
    return "" if known is None or value in known else ", ".join(known)
