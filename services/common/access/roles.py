"""Role: a set of permissions with a name; four are built in."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from tandemmq.common.access.needs import ABILITIES, Action


@dataclass(frozen=True)
class AccessRole:
    """What those who have it may do."""

    name: str
    publish: tuple[str, ...] = ()
    """Names and globs of topics."""
    subscribe: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()
    """Names and globs of groups."""
    allow: frozenset[Action] = frozenset()
    """Of ABILITIES."""


_ALL = ("*",)
_OPERATOR = frozenset({Action.VIEW, Action.MANAGE, Action.OPERATE})

BUILT_IN: Mapping[str, AccessRole] = MappingProxyType(
    {
        "viewer": AccessRole("viewer", allow=frozenset({Action.VIEW})),
        "operator": AccessRole("operator", _ALL, _ALL, _ALL, _OPERATOR),
        "service": AccessRole("service", _ALL, _ALL, _ALL, _OPERATOR | {Action.INTERNAL}),
        "admin": AccessRole("admin", _ALL, _ALL, _ALL, ABILITIES),
    }
)
"""Roles that every file has. `service` and `admin` may do the same today; `service` is for TandemMQ's own processes."""
