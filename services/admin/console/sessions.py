"""Sessions: who has signed in, by a random id that only the browser's cookie and this table know."""

import secrets
import time
from collections.abc import Callable
from hashlib import sha256

from tandemmq.common.access.errors import Unauthenticated
from tandemmq.common.access.principal import Principal

MOST = 1_000
"""Sessions at a time; the one that was silent for longest makes room."""

LIFE = 3
"""A session ends after so many times its idle time, however busy it is."""

_ID_BYTES = 32


class Session:
    """One user in one browser. Times are seconds of the table's clock."""

    __slots__ = ("begun", "key", "principal", "used")

    def __init__(self, key: bytes, principal: Principal, now: float) -> None:
        self.key = key
        self.principal = principal
        self.begun = self.used = now


class ConsoleSessions:
    """All sessions. They end with the process: nothing of them is on disk."""

    def __init__(
        self,
        idle_seconds: float,
        current: Callable[[Principal], Principal],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`current` gives the same user as the access file has it now, or raises Unauthenticated."""
        self._idle = idle_seconds
        self._current = current
        self._clock = clock
        self._of: dict[bytes, Session] = {}
        """By the hash of the id, the one that was silent for longest first."""

    def __len__(self) -> int:
        return len(self._of)

    def open(self, principal: Principal) -> str:
        """A new session; its id, for the cookie."""
        now = self._clock()
        for session in [one for one in self._of.values() if self._over(one, now)]:
            del self._of[session.key]
        if len(self._of) >= MOST:
            del self._of[next(iter(self._of))]
        name = secrets.token_urlsafe(_ID_BYTES)
        key = _key(name)
        self._of[key] = Session(key, principal, now)
        return name

    def find(self, name: str, *, used: bool) -> Session:
        """The session of an id. `used`: by a person, not by a page that refreshes itself. Raises Unauthenticated."""
        session = self._of.get(_key(name))
        if session is None:
            raise Unauthenticated("there is no such session", remedy="sign in")
        self.still(session)
        if used:
            session.used = self._clock()
            self._of[session.key] = self._of.pop(session.key)
        return session

    def still(self, session: Session) -> Principal:
        """The user as it is now, while the session lasts. Raises Unauthenticated."""
        if session.key not in self._of or self._over(session, self._clock()):
            self.end(session)
            raise Unauthenticated("the session has ended", remedy="sign in anew")
        try:
            session.principal = self._current(session.principal)
        except Unauthenticated:
            self.end(session)
            raise
        return session.principal

    def end(self, session: Session) -> None:
        """Nobody is signed in by it any more; what it follows ends soon."""
        self._of.pop(session.key, None)

    def _over(self, session: Session, now: float) -> bool:
        return now - session.used >= self._idle or now - session.begun >= self._idle * LIFE


def _key(name: str) -> bytes:
    """What the table knows an id by: how long a look-up takes tells nothing of the ids that there are."""
    return sha256(name.encode("utf-8", "surrogateescape")).digest()
