"""What a header `authorization: Basic base64(user:secret)` says (RFC 7617); `identity/credentials.py` makes them."""

import base64
import binascii
from typing import NamedTuple

_LONGEST = 2048
_LONGEST_USER = 64


class Credentials(NamedTuple):
    """Who somebody says to be."""

    user: str
    secret: str


def parse_basic(header: str) -> Credentials | None:
    """User and secret; None if the header is nothing of the kind. One pair has one form: it is looked up by it."""
    scheme, _, encoded = header.partition(" ")
    if scheme.lower() != "basic" or len(header) > _LONGEST:
        return None
    try:
        raw = base64.b64decode(encoded, validate=True)
        user, colon, secret = raw.decode().partition(":")
    except (binascii.Error, ValueError):
        return None
    if not colon or len(user) > _LONGEST_USER or base64.b64encode(raw).decode() != encoded:
        return None
    return Credentials(user, secret)
