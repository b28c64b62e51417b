"""An item of the ledger's heap: a run of messages of one place that are due together, as one integer. No I/O.

Due (44 bits), number of the place (28), first offset (63), messages (15). Five digits of a Python integer, 48 bytes,
and not looked at by the garbage collector.
"""

_MESSAGES_BITS, _FIRST_BITS, _PLACE_BITS = 15, 63, 28
MOST_MESSAGES = (1 << _MESSAGES_BITS) - 1
"""So many are in an item at most."""
_MOST_FIRST = (1 << _FIRST_BITS) - 1
_MOST_PLACE = (1 << _PLACE_BITS) - 1
DUE_AT = _MESSAGES_BITS + _FIRST_BITS + _PLACE_BITS
"""The bits of an item below those of its time."""


def pack(due: int, number: int, first: int, messages: int) -> int:
    """Items are in the order of their times."""
    return ((due << _PLACE_BITS | number) << _FIRST_BITS | first) << _MESSAGES_BITS | messages


def unpack(item: int) -> tuple[int, int, int, int]:
    """When, the number of the place, the first offset, how many."""
    messages = item & MOST_MESSAGES
    item >>= _MESSAGES_BITS
    first = item & _MOST_FIRST
    item >>= _FIRST_BITS
    return item >> _PLACE_BITS, item & _MOST_PLACE, first, messages
