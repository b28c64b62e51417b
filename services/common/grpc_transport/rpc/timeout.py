"""grpc-timeout: how long the caller is willing to wait."""

import math
import re
from functools import lru_cache

_TIMEOUT = re.compile(rb"([0-9]{1,8})([HMSmun])").fullmatch
_UNITS = {b"H": 3600.0, b"M": 60.0, b"S": 1.0, b"m": 1e-3, b"u": 1e-6, b"n": 1e-9}


@lru_cache(maxsize=1024)
def parse_timeout(value: bytes) -> float | None:
    """Seconds; None when it is not in the form of at most eight digits and a unit."""
    match = _TIMEOUT(value)
    return None if match is None else int(match[1]) * _UNITS[match[2]]


_FORMS = ((1e-6, b"u"), (1e-3, b"m"), (1.0, b"S"), (60.0, b"M"), (3600.0, b"H"))
_MOST = 99_999_999


def format_timeout(seconds: float) -> bytes:
    """The same, of a number of seconds: never shorter, and exact to a millionth of a second up to 99 seconds."""
    for unit, letter in _FORMS:
        count = math.ceil(round(seconds / unit, 3))
        if count <= _MOST:
            return b"%d%s" % (max(count, 1), letter)
    return b"%dH" % _MOST
