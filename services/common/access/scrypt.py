"""Secrets as text that a file may hold: `scrypt:n=16384,r=8,p=5:SALT:HASH`, salt and hash in base64 (RFC 7914).

The costs stand in the text, so that they can be raised for new secrets while old ones go on. A secret that a person
chose gets costs that make guessing slow even for somebody who has the file; one that was generated has 192 bits, which
nobody guesses, and is checked quickly.
"""

import base64
import binascii
import hashlib
import hmac
import re
import secrets
from typing import NamedTuple


class Costs(NamedTuple):
    """scrypt's parameters: memory is 128 * n * r bytes, time grows with n * r * p."""

    n: int
    r: int
    p: int


CHOSEN = Costs(16384, 8, 5)
"""For secrets that a person chose; as OWASP's password storage cheat sheet has it, with 16 MiB."""

GENERATED = Costs(1024, 8, 1)
"""For secrets of `generate`."""

_FORM = re.compile(r"scrypt:n=(\d{1,9}),r=(\d{1,3}),p=(\d{1,3}):([A-Za-z0-9+/]+=*):([A-Za-z0-9+/]+=*)").fullmatch
_SALT, _HASH = 16, 32
_MOST_MEMORY = 256 << 20
_MOST_WORK = 1 << 23
"""n * r * p: some seconds."""

FORM = "scrypt:n=…,r=…,p=…:SALT:HASH, as `tandem user add` writes it"
"""What is allowed, for errors."""


class _Parts(NamedTuple):
    costs: Costs
    salt: bytes
    hash: bytes


def generate() -> str:
    """A secret that nobody guesses: 32 characters of 64."""
    return secrets.token_urlsafe(24)


def hash_secret(secret: str, costs: Costs = CHOSEN) -> str:
    """The text for the file. Takes about a tenth of a second for each 2**16 of n * r * p."""
    salt = secrets.token_bytes(_SALT)
    texts = [base64.b64encode(part).decode() for part in (salt, _scrypt(secret, salt, costs, _HASH))]
    return f"scrypt:n={costs.n},r={costs.r},p={costs.p}:{':'.join(texts)}"


def is_hash(text: str) -> bool:
    """Whether the text can be compared with: right form, costs that a server can afford."""
    return _parse(text) is not None


def fits(secret: str, text: str) -> bool:
    """Whether a secret is the one that a text was made of. As slow as its costs say; the comparison tells nothing."""
    parts = _parse(text)
    if parts is None:
        return False
    return hmac.compare_digest(_scrypt(secret, parts.salt, parts.costs, len(parts.hash)), parts.hash)


def _parse(text: str) -> _Parts | None:
    match = _FORM(text)
    if match is None:
        return None
    costs = Costs(*map(int, match.groups()[:3]))
    n, r, p = costs
    if n < 2 or n & (n - 1) or not r or not p or 128 * n * r > _MOST_MEMORY or n * r * p > _MOST_WORK:
        return None
    try:
        salt, expected = (base64.b64decode(part, validate=True) for part in match.groups()[3:])
    except binascii.Error:
        return None
    return _Parts(costs, salt, expected) if len(salt) >= 8 and 16 <= len(expected) <= 64 else None


def _scrypt(secret: str, salt: bytes, costs: Costs, size: int) -> bytes:
    n, r, p = costs
    memory = 128 * r * (n + p + 2) + (1 << 20)
    return hashlib.scrypt(secret.encode(), salt=salt, n=n, r=r, p=p, maxmem=memory, dklen=size)
