"""Principal: a user who was recognized, and what it may do."""

from collections.abc import Iterable

from tandemmq.common.access.errors import PermissionDenied
from tandemmq.common.access.needs import ABILITIES, ALL, SOME, Action, Need
from tandemmq.common.access.patterns import Patterns
from tandemmq.common.access.roles import AccessRole
from tandemmq.common.topic_names import GROUP_TOPICS

_REMEMBERED = 10_000
"""So many decisions are remembered; then it begins anew."""


class Principal:
    """One user of one table; a table that was read anew has other principals."""

    __slots__ = ("_abilities", "_granted", "_patterns", "certificate", "name", "roles", "secret")

    def __init__(self, name: str, roles: Iterable[AccessRole], secret: str | None, certificate: str | None) -> None:
        """`secret`: the hash as the file has it; `certificate`: common name of the user's client certificate."""
        roles = tuple(roles)
        self.name = name
        self.roles = tuple(role.name for role in roles)
        self.secret = secret
        self.certificate = certificate
        self._abilities = frozenset[Action]().union(*(role.allow for role in roles))
        self._patterns = {
            Action.PUBLISH: Patterns(text for role in roles for text in role.publish),
            Action.SUBSCRIBE: Patterns(text for role in roles for text in role.subscribe),
            Action.GROUP: Patterns(text for role in roles for text in role.groups),
        }
        self._granted: set[Need] = set()

    def may(self, need: Need) -> bool:
        """Whether this user may do that."""
        if need in self._granted:
            return True
        allowed = self._has(need) or not self._abilities.isdisjoint(need.instead)
        if allowed:
            if len(self._granted) >= _REMEMBERED:
                self._granted.clear()
            self._granted.add(need)
        return allowed

    def demand(self, needs: Iterable[Need], method: str = "") -> None:
        """All of them. Raises PermissionDenied for the first that is not allowed; `method` is named in it."""
        granted = self._granted
        for need in needs:
            if need not in granted and not self.may(need):
                raise self.refusal(need, method)

    def refusal(self, need: Need, method: str = "") -> PermissionDenied:
        """The error that says what this user may not do, and how it could be allowed."""
        call = f", which {method.rpartition('/')[2]} needs" if method and need.action in ABILITIES else ""
        message = f"user {self.name} may not {need.told()}{call}"
        return PermissionDenied(message, remedy=self._remedy(need), user=self.name)

    def _remedy(self, need: Need) -> str:
        roles = f"its roles: {', '.join(self.roles)}" if self.roles else "it has no role"
        if need.action in ABILITIES:
            return f'an administrator can give it a role with allow = ["{need.action}"] ({roles})'
        key = "groups" if need.action is Action.GROUP else need.action.value
        wanted = "…" if need.resource is SOME else need.resource
        more = f', or allow = ["{need.instead[0]}"]' if need.instead else ""
        return f'an administrator can give it a role with {key} = ["{wanted}"]{more} ({roles})'

    def _has(self, need: Need) -> bool:
        action, resource = need.action, need.resource
        if action in ABILITIES:
            return action in self._abilities
        patterns = self._patterns[action]
        if resource is SOME:
            return bool(patterns) or (action is not Action.GROUP and bool(self._patterns[Action.GROUP]))
        if resource == ALL:
            return patterns.everything
        return patterns.fit(resource) or (action is not Action.GROUP and self._is_own_topic(resource))

    def _is_own_topic(self, topic: str) -> bool:
        """`%RETRY%g` and `%DLQ%g` go with the group g, as with RocketMQ."""
        return any(
            topic.startswith(prefix) and self._patterns[Action.GROUP].fit(topic.removeprefix(prefix))
            for prefix in GROUP_TOPICS
        )
