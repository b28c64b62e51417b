"""Who a caller says it is: a name and a secret, sent as `authorization: Basic …` with every call (RFC 7617)."""

import base64
from pathlib import Path

from tandemmq.common.errors import Kind, TandemError

AUTHORIZATION = "authorization"
"""Name of the metadata."""


class UnreadableSecret(TandemError):
    """A file that should hold a secret cannot be read, or holds none."""

    kind = Kind.MISCONFIGURED


class BadUserName(TandemError):
    """A name that no user can have."""

    kind = Kind.MISCONFIGURED


def check_user_name(user: str | None) -> str | None:
    """For `setting(check=…)`: what would be allowed, or None if the text can be a user's name."""
    return None if user and ":" not in user else "a name without a colon"


def authorization(user: str, secret: str) -> tuple[str, str]:
    """The metadata that says so. Raises BadUserName."""
    if check_user_name(user) is not None:
        raise BadUserName(f"{user!r} is no name of a user", remedy="It may not be empty, nor have a colon in it.")
    return AUTHORIZATION, "Basic " + base64.b64encode(f"{user}:{secret}".encode()).decode("ascii")


def read_secret(path: Path, name: str) -> str:
    """The secret in a file, without the blanks and line ends around it. `name`: what named the file, for the error.

    Raises UnreadableSecret.
    """
    try:
        secret = path.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not UTF-8 text"
        raise UnreadableSecret(
            f"{name}={path}: {reason}", remedy="The file holds the secret and nothing else."
        ) from error
    if not secret:
        raise UnreadableSecret(f"{name}={path}: the file is empty", remedy="It holds the secret and nothing else.")
    return secret
