"""GuardedDirect: the short way of a method that asks who calls.

It is for callers whose header is known already, and who may make the call. All others are left to the handler, behind
the guard (`guard.py`), which finds out who they are, and says why they may not.
"""

from collections.abc import Callable
from typing import Any

from google.protobuf.message import DecodeError

from tandemmq.common.access.gate import Gate
from tandemmq.common.grpc_transport import CallFailure, Direct, DirectCall, HeldCall
from tandemmq.common.serving.guard import own


class GuardedDirect:
    """See `grpc_transport.Direct`."""

    def __init__(self, gate: Gate, method: str, deserialize: Callable[[bytes], Any], direct: Direct) -> None:
        """`method`: `/package.Service/Method`; `deserialize`: makes a message of its requests' bytes."""
        self._gate = gate
        self._method = method
        self._deserialize = deserialize
        self._direct = direct

    def __call__(self, message: bytes, call: DirectCall) -> bytes | HeldCall | None:
        """What the short way says; None without asking it where the caller is not known, or may not."""
        try:
            principal = self._gate.known(call)
            if principal is None or not self._gate.lets(principal, self._method, self._deserialize(message)):
                return None
        except (CallFailure, DecodeError):
            return None
        own(call, principal)
        return self._direct(message, call)
