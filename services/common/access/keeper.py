"""AccessKeeper: the table that is in force, and who a header belongs to.

The file is looked at once a second; when it has changed it is read anew, in a thread. A file that cannot be used
leaves everything as it was, and the log says so once.

A secret is compared once: that a header fits a hash stays true, so it is remembered (by a keyed hash of the header) for
as long as the user has that hash. So is that it does not fit. Comparisons are made one after the other, in a thread.
"""

import asyncio
import contextlib
import os
import secrets
import time
from collections.abc import Callable, Iterable
from hashlib import blake2b
from pathlib import Path
from typing import NamedTuple

from tandemmq.common.access.attempts import AttemptBudgets, address_of
from tandemmq.common.access.credentials import Credentials, parse_basic
from tandemmq.common.access.errors import AccessFileError, TooManyAttempts, Unauthenticated
from tandemmq.common.access.file import parse_access, read_text
from tandemmq.common.access.principal import Principal
from tandemmq.common.access.scrypt import fits
from tandemmq.common.access.table import AccessTable
from tandemmq.common.log_output import get_log
from tandemmq.common.processes.started_pool import started_pool
from tandemmq.common.timers import LoopTimers, Timers

log = get_log(__name__)

_LOOK_SECONDS = 1.0
_REMEMBERED = 10_000
"""Headers that are remembered, good ones and bad ones each."""
_MOST_WAITING = 1_000
"""Comparisons that wait for their turn."""


class _Compared(NamedTuple):
    """What a header was compared with."""

    user: str
    secret: str | None
    """The user's hash; None: there was no such user, or it had no secret."""


class _Loaded(NamedTuple):
    """What was found in the file."""

    mark: tuple[int, ...] | None
    text: str
    table: AccessTable | None
    """None: nothing new."""
    problem: str


class AccessKeeper:
    """Keeps one file's table. Make it, and use it, in one event loop; `start` and `close` it for the reloading."""

    def __init__(
        self,
        path: Path,
        *,
        clock: Callable[[], float] = time.monotonic,
        timers: Timers | None = None,
        read: Callable[[Path], str] = read_text,
        compare: Callable[[str, str], bool] = fits,
    ) -> None:
        """Reads the file. Raises AccessFileError.

        `clock` gives seconds, `read` the file's text (or raises AccessFileError), `compare` says whether a secret fits
        a hash; it runs in a thread.
        """
        self._path = path
        self._clock = clock
        self._timers = timers or LoopTimers()
        self._read = read
        self._compare = compare
        self._mark = _mark(path)
        self._text = read(path)
        _warn_of_writers(path)
        self.table: AccessTable = parse_access(self._text, path.name)
        """Who may do what, now."""
        self.problem = ""
        """Why the file as it is now is not in force; empty if it is."""
        self._sure = False
        self._key = secrets.token_bytes(32)
        self._good: dict[bytes, _Compared] = {}
        self._bad: dict[bytes, _Compared] = {}
        self._comparing: dict[bytes, asyncio.Task[None]] = {}
        self._turn = asyncio.Lock()
        self._attempts = AttemptBudgets()
        self._thread = started_pool(1, "access")
        self._watching: asyncio.Task[None] | None = None

    # -- the file ---------------------------------------------------------------------------------------------------

    def start(self) -> None:
        """Look at the file from now on."""
        self._watching = asyncio.create_task(self._watch(), name="access file")

    async def close(self) -> None:
        """Look no more."""
        if self._watching is not None:
            self._watching.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._watching
        self._thread.shutdown(wait=False, cancel_futures=True)

    async def _watch(self) -> None:
        while True:
            await self._timers.sleep(_LOOK_SECONDS)
            try:
                if self.changed:
                    # A table changes in a turn of the loop, for all at once.
                    self._take(await asyncio.to_thread(self._load))
            except Exception as error:  # noqa: BLE001 - who looks no more would never see that a user was removed
                log.failure("the access file could not be looked at", error)

    @property
    def changed(self) -> bool:
        """Whether the file may have changed since it was read.

        After each reading it is read once more: two changes can have the same time, if they are close together.
        """
        return not self._sure or _mark(self._path) != self._mark

    def refresh(self) -> None:
        """Take over what the file says now, if it says something else and can be used."""
        self._take(self._load())

    def _load(self) -> "_Loaded":
        mark = _mark(self._path)
        try:
            text = self._read(self._path)
            known = text == self._text and not self.problem
            return _Loaded(mark, text, None if known else parse_access(text, self._path.name), "")
        except AccessFileError as error:
            return _Loaded(mark, "", None, error.explain())

    def _take(self, loaded: "_Loaded") -> None:
        self._sure = loaded.mark == self._mark
        self._mark = loaded.mark
        if loaded.problem:
            if loaded.problem != self.problem:
                self.problem = loaded.problem
                log.error("access file cannot be used: the last good one stays in force", problem=self.problem)
        elif loaded.table is not None:
            self._text, self.table, self.problem = loaded.text, loaded.table, ""
            log.info("access file taken over", file=str(self._path), users=len(self.table.principals))

    # -- callers ----------------------------------------------------------------------------------------------------

    def known(self, header: str) -> Principal | None:
        """Whose header it is, if that is known already; never waits."""
        compared = self._good.get(self._digest(header))
        if compared is None:
            return None
        principal = self.table.principals.get(compared.user)
        return principal if principal is not None and principal.secret == compared.secret else None

    async def authenticate(self, header: str | None, peer: str, certificates: Iterable[str] = ()) -> Principal:
        """Who calls, by the value of `authorization`; without one, by the names in the client's certificate.

        `peer` is where the call comes from, as gRPC names it. Raises Unauthenticated, TooManyAttempts.
        """
        if header is None:
            return self._by_certificate(certificates)
        known = self.known(header)
        if known is not None:
            return known
        credentials = parse_basic(header)
        if credentials is None:
            raise Unauthenticated("the authorization header is not of the form: Basic base64(user:secret)")
        digest = self._digest(header)
        if self._bad.get(digest) != self._now_of(credentials.user):
            task = self._comparing.get(digest)
            if task is None:
                if len(self._comparing) >= _MOST_WAITING:
                    raise TooManyAttempts("too many callers wait to be recognized", 1, credentials.user)
                task = asyncio.create_task(self._decide(digest, credentials, address_of(peer)), name="access")
                self._comparing[digest] = task
                task.add_done_callback(lambda _: self._comparing.pop(digest, None))
            await asyncio.shield(task)  # others may wait for the same; a caller that goes away ends none of it
            known = self.known(header)
            if known is not None:
                return known
        raise Unauthenticated(f"there is no user {credentials.user!r} with this secret", user=credentials.user)

    def current(self, principal: Principal) -> Principal:
        """The same user as the file has it now; for who was recognized before. Raises Unauthenticated."""
        now = self.table.principals.get(principal.name)
        if now is None or (now.secret, now.certificate) != (principal.secret, principal.certificate):
            raise Unauthenticated(
                f"user {principal.name} was removed, or has another secret now",
                remedy="sign in anew",
                user=principal.name,
            )
        return now

    def _by_certificate(self, names: Iterable[str]) -> Principal:
        users = self.table.by_certificate
        names = list(names) if users else []
        for name in names:
            if name in users:
                return users[name]
        if names:
            raise Unauthenticated(f"no user has a certificate of {', '.join(names)}, and there are no credentials")
        raise Unauthenticated("there are no credentials, and this server asks who calls")

    async def _decide(self, digest: bytes, credentials: Credentials, address: str) -> None:
        """Compare, and remember what came of it. Raises TooManyAttempts."""
        user, secret = credentials
        async with self._turn:
            wait = self._attempts.take(user, address, self._clock())
            if wait:
                log.warning("too many wrong secrets", user=user, address=address)
                raise TooManyAttempts(f"too many wrong secrets for user {user!r} or from {address}", wait, user)
            now = self._now_of(user)
            stored = now.secret or self.table.stand_in(int.from_bytes(self._digest(user)[:8]))
            loop = asyncio.get_running_loop()
            fit = stored is not None and await loop.run_in_executor(self._thread, self._compare, secret, stored)
            if fit and now.secret is not None:
                self._attempts.succeeded(user, address, self._clock())
                _remember(self._good, digest, now)
            else:
                log.warning("wrong secret", user=user, address=address)
                _remember(self._bad, digest, now)

    def _now_of(self, user: str) -> _Compared:
        principal = self.table.principals.get(user)
        return _Compared(user, None if principal is None else principal.secret)

    def _digest(self, text: str) -> bytes:
        return blake2b(text.encode("utf-8", "surrogateescape"), key=self._key, digest_size=16).digest()


def _remember(memory: dict[bytes, _Compared], digest: bytes, compared: _Compared) -> None:
    memory.pop(digest, None)
    if len(memory) >= _REMEMBERED:
        del memory[next(iter(memory))]
    memory[digest] = compared


def _mark(path: Path) -> tuple[int, ...] | None:
    """What tells one state of a file from another; None if there is none."""
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_mtime_ns, found.st_ctime_ns, found.st_ino, found.st_size


def _warn_of_writers(path: Path) -> None:
    """Say so where others than its owner may change who may do what."""
    with contextlib.suppress(OSError):
        if os.stat(path).st_mode & 0o022:
            log.warning("the access file can be changed by others than its owner", file=str(path), remedy="chmod go-w")
