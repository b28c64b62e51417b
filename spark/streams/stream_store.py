"""The store that a stream follows, asked with patience.

A store that restarts is away for seconds, and a query that failed each time would be of little use. One that is gone
for good must not leave a query that waits in silence either. So the query finds nothing new while the store is away,
and fails when it has been away for `PATIENCE_SECONDS`.
"""

import time
import warnings
from collections.abc import Callable
from typing import Any, TypeVar

from tandemmq.client import ClientError, Identity, StoreClient, StoreUnreachable

PATIENCE_SECONDS = 300.0
"""How long a query waits for its store between two micro-batches."""

ANSWER_SECONDS = 10.0
_PAUSE_SECONDS = 0.5
_AWAY = ("UNAVAILABLE", "DEADLINE_EXCEEDED")

Answer = TypeVar("Answer")


def check_master(client: StoreClient) -> None:
    """Of several stores only the master is read: a slave may be behind. Raises StoreUnreachable: there is none."""
    if not client.find_master():
        raise StoreUnreachable("none of them is the master", "UNAVAILABLE")


def is_away(error: ClientError) -> bool:
    """Whether the store does not answer, is starting or is rebuilding: the same call may succeed later."""
    return error.code in _AWAY


class StreamStore:
    """The connection to one store. Pickled without what it is connected to."""

    def __init__(self, address: str, patience: float = PATIENCE_SECONDS) -> None:
        """``address``: ``host:port``, of a pair both with a comma; ``patience``: seconds."""
        self.address = address
        self._patience = patience
        self._client: StoreClient | None = None
        self._away_since = 0.0
        self._asked = 0.0

    def demand(self, call: Callable[[StoreClient], Answer]) -> Answer:
        """What ``call`` gives. Raises ClientError at once."""
        self._asked = time.monotonic()
        if self._client is None:
            identity = Identity.from_environment().at(self.address)
            self._client = StoreClient(self.address, timeout=ANSWER_SECONDS, **identity.arguments())
        try:
            check_master(self._client)
            answer = call(self._client)
        except ClientError as error:
            # A channel that has failed waits for up to two minutes before it tries again; a new one does not.
            self.close()
            raise self._named(error) from error
        self._away_since = 0.0
        return answer

    def ask(self, call: Callable[[StoreClient], Answer]) -> Answer | None:
        """What ``call`` gives; None while the store is away. Raises ClientError if it refuses, or is away for long."""
        now = time.monotonic()
        if self._away_since and now - self._asked < _PAUSE_SECONDS:
            time.sleep(_PAUSE_SECONDS / 10)  # Spark asks again at once
            return None
        try:
            return self.demand(call)
        except ClientError as error:
            if not is_away(error):
                raise
            if not self._away_since:
                self._away_since = now
                warnings.warn(f"{error} The query waits for it, up to {self._patience:.0f} s.", stacklevel=2)
            if now - self._away_since >= self._patience:
                raise
            return None

    def close(self) -> None:
        """End the connection; the next call makes another."""
        if self._client is not None:
            self._client.close()
            self._client = None

    def _named(self, error: ClientError) -> ClientError:
        """The same error; one that says who does not answer."""
        if isinstance(error, StoreUnreachable):
            return StoreUnreachable(f"The store at {self.address} does not answer: {error}", error.code)
        return error

    def __getstate__(self) -> dict[str, Any]:
        return {"address": self.address, "_patience": self._patience}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(state["address"], state["_patience"])  # type: ignore[misc]
