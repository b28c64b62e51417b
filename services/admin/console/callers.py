"""Who sends a request: a session that its cookie names, or a user and secret in `Authorization: Basic`."""

from typing import NamedTuple

from aiohttp import web

from tandemmq.admin.console.sessions import ConsoleSessions, Session
from tandemmq.common.access.errors import Unauthenticated
from tandemmq.common.access.principal import Principal
from tandemmq.common.grpc_transport.aio.identity import peer_name
from tandemmq.common.identity.credentials import authorization
from tandemmq.common.serving.guard import CallGuard

QUIET = "X-Tandem-Refresh"
"""The header of requests that a page makes by itself: they do not keep a session alive."""


class ConsoleCaller(NamedTuple):
    """Who sends a request."""

    principal: Principal | None
    """None where everybody may do everything."""
    session: Session | None = None


class Callers:
    """Recognizes them, and lets them sign in and out."""

    def __init__(self, guard: CallGuard, idle_seconds: float) -> None:
        """`guard`: without a gate everybody may do everything; `idle_seconds`: see Sessions."""
        self._guard = guard
        self.is_open = guard.gate is None
        """Nobody has to sign in here."""
        self.sessions = ConsoleSessions(idle_seconds, self._current)
        self.port = 0
        """Of the console: cookies do not know ports, and two consoles of one machine are not one."""

    async def of(self, request: web.Request) -> ConsoleCaller:
        """Who sends this request. Raises Unauthenticated."""
        if self.is_open:
            return ConsoleCaller(None)
        header = request.headers.get("Authorization")
        if header is not None:
            return ConsoleCaller(await self._guard.authenticate(header, peer(request)))
        name = request.cookies.get(self.cookie(request))
        if name is None:
            raise Unauthenticated("nobody is signed in", remedy="sign in, or send `Authorization: Basic`")
        session = self.sessions.find(name, used=QUIET not in request.headers)
        return ConsoleCaller(session.principal, session)

    def still(self, caller: ConsoleCaller) -> Principal | None:
        """The user as it is now, for a call that lasts. Raises Unauthenticated."""
        if caller.principal is None:
            return None
        if caller.session is not None:
            return self.sessions.still(caller.session)
        return self._guard.current(caller.principal)

    async def sign_in(self, request: web.Request, user: str, secret: str) -> str:
        """A new session; its cookie, for the header Set-Cookie. Raises Unauthenticated, TooManyAttempts."""
        if self.is_open:
            raise Unauthenticated("nobody has to sign in here", remedy="set accessFile if somebody should")
        if ":" in user:  # no user is called so, and in the header it would be another name and secret
            raise Unauthenticated(f"there is no user {user[:64]!r} with this secret", remedy="look at both again")
        principal = self._known(await self._guard.authenticate(authorization(user, secret)[1], peer(request)))
        return self._cookie_text(request, self.sessions.open(principal))

    def sign_out(self, request: web.Request) -> tuple[str, str]:
        """Ends the request's session, if there is one; its user (or nobody), and what makes the browser forget it."""
        user = ""
        name = request.cookies.get(self.cookie(request))
        if name is not None:
            try:
                session = self.sessions.find(name, used=True)
            except Unauthenticated:
                pass
            else:
                user = session.principal.name
                self.sessions.end(session)
        return user, self._cookie_text(request, "") + "; Max-Age=0"

    def _current(self, principal: Principal) -> Principal:
        return self._known(self._guard.current(principal))

    @staticmethod
    def _known(principal: Principal | None) -> Principal:
        if principal is None:
            raise Unauthenticated("nobody has to sign in here")
        return principal

    def cookie(self, request: web.Request) -> str:
        """The cookie's name. `__Host-`: browsers take it over TLS only, and from this very host."""
        return f"{'__Host-' if _is_secure(request) else ''}tandem-{self.port}"

    def _cookie_text(self, request: web.Request, value: str) -> str:
        secure = "; Secure" if _is_secure(request) else ""
        return f"{self.cookie(request)}={value}; Path=/; HttpOnly; SameSite=Strict{secure}"


def peer(request: web.Request) -> str:
    """Where a request comes from, as gRPC writes it: `ipv4:127.0.0.1:4711`."""
    transport = request.transport
    address = None if transport is None else transport.get_extra_info("peername")
    connection = None if transport is None else transport.get_extra_info("socket")
    return "unknown:" if not address or connection is None else peer_name(address, connection.family)


def _is_secure(request: web.Request) -> bool:
    """TLS here, or at a proxy that says so; who lies about it loses nothing but a plain cookie."""
    return request.secure or request.headers.get("X-Forwarded-Proto", "").strip().lower() == "https"
