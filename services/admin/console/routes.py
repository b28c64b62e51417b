"""Which path is answered by what; errors as JSON; the headers of every answer."""

import json
import secrets
from collections.abc import Awaitable, Callable
from typing import Any

from aiohttp import web
from aiohttp.http_exceptions import HttpProcessingError

from tandemmq.admin.actions.actions import Actions
from tandemmq.admin.console.callers import Callers, peer
from tandemmq.admin.console.errors import NoSuchPath, TooLarge, UnreadableRequest, describe
from tandemmq.admin.console.files import File, Files
from tandemmq.admin.console.gateway import Gateway
from tandemmq.admin.console.visits import Visits
from tandemmq.common.access.errors import TooManyAttempts, Unauthenticated
from tandemmq.common.errors import TandemError
from tandemmq.common.log_output import get_log
from tandemmq.common.serving.grpc_status import status_of

log = get_log(__name__)

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]

POLICY = "; ".join(
    [
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self'",
        "connect-src 'self'",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
        "require-trusted-types-for 'script'",
        "trusted-types 'none'",
    ]
)
"""Content security policy: scripts and styles are files of ours, and no text ever becomes markup."""

_HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Server": "TandemMQ",
}

_FOREVER = "public, max-age=31536000, immutable"


class ConsoleRoutes:
    """The console's paths."""

    def __init__(self, gateway: Gateway, callers: Callers, visits: Visits, actions: Actions) -> None:
        self._gateway = gateway
        self._callers = callers
        self._visits = visits
        self._actions = actions
        self._files = Files()

    def application(self, largest_request: int) -> web.Application:
        """What aiohttp serves. `largest_request`: bytes of a body."""
        application = web.Application(client_max_size=largest_request, middlewares=[self._answer])
        application.on_response_prepare.append(_add_headers)
        application.router.add_routes(
            [
                web.get("/", self._index),
                web.get("/static/{version}/{name:.+}", self._file),
                web.get("/healthz", self._health),
                web.post("/session", self._sign_in),
                web.delete("/session", self._sign_out),
                web.post("/api/{method}", self._gateway.call),
                web.post("/stream/{method}", self._gateway.stream),
            ]
        )
        return application

    @web.middleware
    async def _answer(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """Looks at where a request comes from, and makes an answer of every error."""
        try:
            if request.path != "/healthz":
                self._visits.check_host(request.headers.get("Host"))
            if request.method not in ("GET", "HEAD"):
                self._visits.check_change(request.headers)
            return await handler(request)
        except TandemError as error:
            return _failure(error)
        except web.HTTPException as error:
            return _failure(NoSuchPath(f"{request.method} {request.path[:200]}: {error.reason}"), error.status)
        except (web.RequestPayloadError, HttpProcessingError):
            return _failure(UnreadableRequest("the body is not sent as HTTP has it"))
        except ConnectionError:
            raise  # nobody is there any more
        except Exception as error:  # noqa: BLE001
            incident = secrets.token_hex(4)
            log.failure("console request failed unexpectedly", error, path=request.path, incident=incident)
            return _failure(TandemError(f"internal error; admin's log has the details under incident {incident}"))

    # -- pages --------------------------------------------------------------------------------------------------------

    async def _index(self, request: web.Request) -> web.StreamResponse:
        return _send_file(request, self._files.index, "no-cache")

    async def _file(self, request: web.Request) -> web.StreamResponse:
        file = self._files.get(request.match_info["version"], request.match_info["name"])
        if file is None:
            raise NoSuchPath("there is no such file", remedy="load the page anew: the console may have been updated")
        return _send_file(request, file, _FOREVER)

    async def _health(self, request: web.Request) -> web.StreamResponse:
        return web.Response(text="ok\n", headers={"Cache-Control": "no-store"})

    # -- sessions -----------------------------------------------------------------------------------------------------

    async def _sign_in(self, request: web.Request) -> web.StreamResponse:
        user, secret = await _credentials(request)
        try:
            cookie = await self._callers.sign_in(request, user, secret)
        except Unauthenticated as error:
            await self._note(request, "SignIn", user, error)
            raise
        await self._note(request, "SignIn", user)
        return web.json_response({"user": user}, headers={"Set-Cookie": cookie})

    async def _sign_out(self, request: web.Request) -> web.StreamResponse:
        user, cookie = self._callers.sign_out(request)
        if user:
            await self._note(request, "SignOut", user)
        return web.json_response({}, headers={"Set-Cookie": cookie})

    async def _note(self, request: web.Request, method: str, user: str, error: TandemError | None = None) -> None:
        outcome, problem = ("OK", "") if error is None else (status_of(error).code, error.message)
        where = f"http:{peer(request).partition(':')[2]}"
        await self._actions.note(method, user=user, peer=where, outcome=outcome, problem=problem)


async def _credentials(request: web.Request) -> tuple[str, str]:
    """User and secret of a sign-in's body. Raises UnreadableRequest, TooLarge."""
    if (request.content_length or 0) > 10_000:
        raise TooLarge("this is no user and secret: the body is too large")
    try:
        body: Any = json.loads(await request.read())
        user, secret = body["user"], body["secret"]
        if not isinstance(user, str) or not isinstance(secret, str):
            raise TypeError
        known = bool(user) and len((user + secret).encode()) < 1_000  # halves of characters are no text
    except (ValueError, TypeError, KeyError, RecursionError):
        known, user, secret = False, "", ""
    if not known:
        raise UnreadableRequest("a sign-in is a JSON object with the texts `user` and `secret`")
    return user, secret


def _failure(error: TandemError, status: int | None = None) -> web.Response:
    found, body = describe(error)
    response = web.json_response(body, status=status or found)
    if isinstance(error, TooManyAttempts):
        response.set_status(429)
        response.headers["Retry-After"] = str(max(1, round(error.retry_after)))
    elif response.status == 401:
        response.headers["WWW-Authenticate"] = (
            "Session"  # not Basic: browsers would ask for it in a window of their own
        )
    return response


def _send_file(request: web.Request, file: File, caching: str) -> web.StreamResponse:
    headers = {"ETag": file.tag, "Cache-Control": caching, "Vary": "Accept-Encoding"}
    if file.tag in (tag.strip() for tag in request.headers.get("If-None-Match", "").split(",")):
        return web.Response(status=304, headers=headers)
    body = file.body
    if "gzip" in request.headers.get("Accept-Encoding", ""):
        body, headers["Content-Encoding"] = file.packed, "gzip"
    return web.Response(body=body, content_type=file.kind, charset="utf-8", headers=headers)


async def _add_headers(request: web.Request, response: web.StreamResponse) -> None:
    response.headers.update(_HEADERS)
    response.headers.setdefault("Cache-Control", "no-store")
