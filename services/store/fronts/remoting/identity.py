"""Identity: who makes a request, by access key and signature (RocketMQ: ``AclClientRPCHook``, the same in 4 and 5).

Signed are the values of all extFields but the signature, one after the other in the order of their names, and then the
body: HMAC-SHA1 under the user's signing secret, in base64. Nothing of that is secret on the way or used up by a
request: only TLS keeps a request from being sent once more.
"""

import base64
import binascii
import hashlib
import hmac
from collections.abc import Mapping

from tandemmq.common.access.errors import AccessRefused, Unauthenticated
from tandemmq.common.access.principal import Principal
from tandemmq.common.serving.guard import CallGuard
from tandemmq.common.wire.remoting.command import Body, Command
from tandemmq.common.wire.remoting.versions import V4_9_3
from tandemmq.store.fronts.remoting.call import RemotingCall

ACCESS_KEY = "AccessKey"
SIGNATURE = "Signature"
_ADDED_LATER = "_UNIQUE_KEY_QUERY"
"""A field that clients up to 4.9.3 add after the signature."""


class RemotingIdentity:
    """Recognizes callers by the signing secrets of users."""

    def __init__(self, guard: CallGuard, secrets: Mapping[str, str]) -> None:
        """`secrets`: by user; looked at in each call, so that it may change."""
        self._guard = guard
        self._secrets = secrets

    @property
    def recognizes(self) -> bool:
        """Whether callers have to say who they are."""
        return self._guard.gate is not None

    def principal(self, call: RemotingCall) -> Principal | None:
        """Who asks; None where everybody may do everything. Raises Unauthenticated."""
        gate = self._guard.gate
        if gate is None:
            return None
        try:
            return self._recognized(call.command, gate.keeper.table.principals)
        except AccessRefused as error:
            self._guard.refused[error.reason] += 1
            raise

    def _recognized(self, command: Command, principals: Mapping[str, Principal]) -> Principal:
        fields = command.fields or {}
        access_key = fields.get(ACCESS_KEY, "")
        if not access_key:
            raise Unauthenticated(
                "No accessKey is configured: nobody has said who calls",
                remedy="Give the client an AclClientRPCHook with an access key and its secret.",
            )
        secret, principal = self._secrets.get(access_key), principals.get(access_key)
        left_out = (_ADDED_LATER,) if command.version <= V4_9_3 else ()
        expected = signature(secret or "", fields, command.body, left_out)
        if not hmac.compare_digest(expected, _given(fields.get(SIGNATURE, ""))) or secret is None or principal is None:
            raise Unauthenticated(
                f"Check signature failed for accessKey={access_key[:100]}",
                remedy="`tandem user signing-secret NAME` makes a secret for a user.",
                user=access_key,
            )
        return principal


def signature(secret: str, fields: Mapping[str, str], body: Body, left_out: tuple[str, ...] = ()) -> bytes:
    """What the secret makes of a request."""
    names = sorted((name for name in fields if name != SIGNATURE and name not in left_out), key=_utf16)
    content = "".join(fields[name] for name in names).encode("utf-8", "replace") + bytes(body)
    return hmac.new(secret.encode(), content, hashlib.sha1).digest()


def _utf16(name: str) -> bytes:
    """Java sorts by UTF-16 code units."""
    return name.encode("utf-16-be", "surrogatepass")


def _given(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return b""
