"""Identity: who makes a call, by access key and signature.

The header `authorization` has an access key, which is a user of the access file, and the HMAC-SHA1 of the header
`x-mq-date-time` under the user's signing secret. Nothing else is signed and clocks of clients are of any zone: a header
that was overheard can be used again. Only TLS keeps it from that.
"""

import binascii
import hmac
from collections.abc import Mapping
from pathlib import Path

from tandemmq.common.access.errors import AccessRefused, Unauthenticated
from tandemmq.common.access.principal import Principal
from tandemmq.common.serving.guard import CallGuard
from tandemmq.store.fronts.rocketmq5.caller import Caller

SCHEME = "MQv2-HMAC-SHA1"
_LONGEST = 2048


class SigningIdentity:
    """Recognizes callers by the signing secrets of users."""

    def __init__(self, guard: CallGuard, secrets: Mapping[str, str]) -> None:
        """`secrets`: by user; looked at in each call, so that it may change."""
        self._guard = guard
        self._secrets = secrets

    def principal(self, caller: Caller) -> Principal | None:
        """Who calls; None where everybody may do everything. Raises Unauthenticated."""
        gate = self._guard.gate
        if gate is None:
            return None
        try:
            return self._recognized(caller, gate.keeper.table.principals)
        except AccessRefused as error:
            self._guard.refused[error.reason] += 1
            raise

    @property
    def asks(self) -> bool:
        """Whether callers must say who they are."""
        return self._guard.gate is not None

    def recognized(self, caller: Caller) -> Principal | None:
        """Who calls, where callers must say who they are; None: nobody who is known. It is not counted."""
        gate = self._guard.gate
        if gate is None:
            return None
        try:
            return self._recognized(caller, gate.keeper.table.principals)
        except AccessRefused:
            return None

    def _recognized(self, caller: Caller, principals: Mapping[str, Principal]) -> Principal:
        access_key, given = _parsed(caller.authorization)
        if not access_key:
            raise Unauthenticated("nobody has said who calls", remedy="Give the client an access key and its secret.")
        secret, principal = self._secrets.get(access_key), principals.get(access_key)
        expected = signature(secret or "", caller.date_time)
        if not hmac.compare_digest(expected, given) or secret is None or principal is None:
            raise Unauthenticated(
                "the access key is unknown, or the signature is not made with its secret",
                remedy="`tandem user signing-secret NAME` makes a secret for a user.",
                user=access_key,
            )
        return principal


def signing_secrets(access_file: Path | None) -> Mapping[str, str]:
    """The signing secrets beside an access file; none without one. Raises AccessFileError."""
    if access_file is None:
        return {}
    from tandemmq.common.access.signing import SigningSecrets, signing_file

    return SigningSecrets(signing_file(access_file))


def signature(secret: str, date_time: str) -> bytes:
    """What the secret makes of a date."""
    return hmac.digest(secret.encode(), date_time.encode(), "sha1")


def _parsed(header: str) -> tuple[str, bytes]:
    """Access key and signature; both empty where there is none, or no such header."""
    scheme, _, rest = header.partition(" ")
    if scheme != SCHEME or len(header) > _LONGEST:
        return "", b""
    fields = dict(part.strip().partition("=")[::2] for part in rest.split(","))
    try:
        given = binascii.unhexlify(fields.get("Signature", ""))
    except (binascii.Error, ValueError):
        given = b""
    return fields.get("Credential", "").partition("/")[0], given
