"""Gate: who calls, and whether the rules let this user, before a call and while it lasts."""

from collections.abc import AsyncIterable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, TypeVar

from tandemmq.common.access.errors import PermissionDenied, Unauthenticated
from tandemmq.common.access.keeper import AccessKeeper
from tandemmq.common.access.needs import Need
from tandemmq.common.access.principal import Principal
from tandemmq.common.access.rules import Rule, Rules, check_complete
from tandemmq.common.access.throttle import Throttle
from tandemmq.common.identity.credentials import AUTHORIZATION
from tandemmq.common.log_output import get_log

log = get_log(__name__)

Answer = TypeVar("Answer")

_COMMON_NAME = "x509_common_name"
_LOG_SECONDS = 60.0
"""The same refusal is logged once in so many seconds."""


class Gate:
    """The rules of a server's methods, over one access file."""

    def __init__(self, keeper: AccessKeeper) -> None:
        self.keeper = keeper
        self._rules: dict[str, Rule] = {}
        self.callers: dict[int, Principal] = {}
        """Who makes the calls that run, by the id of their context."""
        self._logged = Throttle(_LOG_SECONDS)

    def register(self, service: str, methods: Iterable[str], rules: Rules | None) -> None:
        """Take a service's rules. Raises MissingRule."""
        check_complete(service, methods, rules)
        self._rules.update({f"/{service}/{name}": rule for name, rule in (rules or {}).items()})

    # -- who --------------------------------------------------------------------------------------------------------

    def known(self, context: Any) -> Principal | None:
        """Who makes a call, if that need not be found out first; never waits."""
        header = _header(context)
        return None if header is None else self.keeper.known(header)

    async def identify(self, context: Any) -> Principal:
        """Who makes a call. Raises Unauthenticated."""
        header = _header(context)
        names = () if header is not None else _common_names(context.auth_context())
        return await self.keeper.authenticate(header, context.peer(), names)

    @contextmanager
    def entered(self, context: Any, principal: Principal) -> Iterator[None]:
        """While it lasts, `caller(context)` is the principal."""
        self.callers[id(context)] = principal
        try:
            yield
        finally:
            del self.callers[id(context)]

    def caller(self, context: Any) -> Principal | None:
        """Who makes a call that runs."""
        return self.callers.get(id(context))

    # -- what -------------------------------------------------------------------------------------------------------

    def begin(self, principal: Principal, method: str) -> "Pass":
        """Let a stream of requests begin, before there is one. Raises PermissionDenied."""
        admitted = Pass(self, principal, method, self._rules[method])
        admitted.demand(admitted.rule.least)
        return admitted

    def admit(self, principal: Principal, method: str, request: Any) -> "Pass":
        """Let a stream of answers to one request begin. Raises PermissionDenied."""
        admitted = Pass(self, principal, method, self._rules[method])
        admitted.request(request)
        admitted.demand(admitted.rule.least)
        return admitted

    def check(self, principal: Principal | None, method: str, request: Any) -> None:
        """Whether a whole call may be made: `/package.Service/Method`. Raises PermissionDenied, Unauthenticated."""
        if principal is None:
            raise Unauthenticated("nobody has said who calls")
        rule = self._rules[method]
        try:
            if rule.of is not None:  # first: it names the topic or group
                principal.demand(rule.of(request), method)
            principal.demand(rule.least, method)
        except PermissionDenied as refusal:
            self.refused(principal, method, refusal)
            raise

    def lets(self, principal: Principal, method: str, request: Any) -> bool:
        """Whether `check` would raise nothing."""
        rule = self._rules[method]
        if rule.of is not None and not all(map(principal.may, rule.of(request))):
            return False
        return all(map(principal.may, rule.least))

    def methods(self, principal: Principal, service: str) -> list[str]:
        """Names of a service's methods that this user may call, for some topic or group at least."""
        prefix = f"/{service}/"
        return [
            path.removeprefix(prefix)
            for path, rule in self._rules.items()
            if path.startswith(prefix) and all(principal.may(need) for need in rule.least)
        ]

    def refused(self, principal: Principal, method: str, refusal: PermissionDenied) -> None:
        """Tell the log, not too often."""
        if self._logged.now((principal.name, method, refusal.message)):
            log.warning("refused", user=principal.name, method=method, reason=refusal.message)


class Pass:
    """What one call was allowed; looked at again when the file has changed meanwhile."""

    __slots__ = ("_gate", "_method", "_needs", "_principal", "_table", "rule")

    def __init__(self, gate: Gate, principal: Principal, method: str, rule: Rule) -> None:
        self.rule = rule
        self._gate = gate
        self._principal = principal
        self._method = method
        self._table = gate.keeper.table
        self._needs: set[Need] = set()

    def demand(self, needs: Iterable[Need]) -> None:
        """Raises PermissionDenied."""
        needs = tuple(needs)
        try:
            self._principal.demand(needs, self._method)
        except PermissionDenied as refusal:
            self._gate.refused(self._principal, self._method, refusal)
            raise
        self._needs.update(needs)

    def request(self, request: Any) -> None:
        """One request, the first or a further one. Raises PermissionDenied, Unauthenticated."""
        self.still(None)
        if self.rule.of is not None:
            self.demand(self.rule.of(request))

    def still(self, answer: Answer) -> Answer:
        """The answer, as what was allowed is still allowed by the file as it is now.

        Raises PermissionDenied, Unauthenticated.
        """
        keeper = self._gate.keeper
        if self._table is not keeper.table:
            self._table = keeper.table
            self._principal = keeper.current(self._principal)
            self.demand(tuple(self._needs))
        return answer


class CheckedRequests:
    """The requests of a stream, each checked before its handler sees it."""

    __slots__ = ("_pass", "_requests")

    def __init__(self, requests: AsyncIterable[Any], admitted: Pass) -> None:
        self._requests = aiter(requests)
        self._pass = admitted

    def __aiter__(self) -> "CheckedRequests":
        return self

    async def __anext__(self) -> Any:
        request = await anext(self._requests)
        self._pass.request(request)
        return request


def _header(context: Any) -> str | None:
    for key, value in context.invocation_metadata() or ():
        if key == AUTHORIZATION:
            return value if isinstance(value, str) else str(value, "latin-1")
    return None


def _common_names(properties: Mapping[str, Iterable[bytes]] | None) -> list[str]:
    """The names in a client's certificate, which TLS has verified."""
    return [name.decode("utf-8", "replace") for name in (properties or {}).get(_COMMON_NAME, ())]
