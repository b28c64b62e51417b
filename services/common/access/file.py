"""access.toml: users with hashed secrets, and roles.

::

[users.alice]
secret = "scrypt:…"                # made by `tandem user add`
roles = ["orders"]

[users.reports]
certificate = "reports.example"    # common name of a client certificate (mTLS)
roles = ["viewer"]

[roles.orders]                     # built in: admin, operator, viewer, service
publish = ["orders", "orders-*"]   # topics
subscribe = ["orders*"]
groups = ["orders-*"]
allow = ["view"]                   # view, manage, operate, internal
"""

import difflib
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NoReturn

from tandemmq.common.access.errors import AccessFileError
from tandemmq.common.access.needs import ABILITIES, Action
from tandemmq.common.access.patterns import WRONG, is_pattern
from tandemmq.common.access.principal import Principal
from tandemmq.common.access.roles import BUILT_IN, AccessRole
from tandemmq.common.access.scrypt import FORM, is_hash
from tandemmq.common.access.table import AccessTable

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@-]{0,63}").fullmatch
NAME_FORM = "1 to 64 of a-z A-Z 0-9 . _ @ -, beginning with a letter or digit"

_USER_KEYS = ("secret", "certificate", "roles")
_ROLE_KEYS = ("publish", "subscribe", "groups", "allow")


def is_name(text: str) -> bool:
    """Whether users and roles may be called so."""
    return _NAME(text) is not None


def read_text(path: Path) -> str:
    """What stands in a file. Raises AccessFileError."""
    try:
        return path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not UTF-8 text"
        raise AccessFileError(
            f"cannot read the access file {path}: {reason}", remedy="`tandem user add --file` makes one"
        ) from error


def parse_access(text: str, name: str) -> AccessTable:
    """The users that a text describes; `name` is the file's, for errors. Raises AccessFileError."""
    return _Reader(text, name).table()


class _Reader:
    """One text on its way to a table."""

    def __init__(self, text: str, name: str) -> None:
        import tomllib  # here: services without an accessFile need not load it

        self._lines = text.splitlines()
        self._name = name
        try:
            self._document: dict[str, Any] = tomllib.loads(text)
        except tomllib.TOMLDecodeError as error:
            raise AccessFileError(
                f"{name}: {error}".replace("(at line", "at (line"), remedy="the file is TOML: see docs/security.md"
            ) from error

    def table(self) -> AccessTable:
        """Everything, checked."""
        self._only(self._document, ("users", "roles"), ())
        roles = dict(BUILT_IN)
        for name, entry in self._entries("roles"):
            if name in BUILT_IN:
                self._fail(("roles", name), f"the role {name} is built in", "call yours otherwise")
            roles[name] = self._role(name, entry)
        users = [self._user(name, entry, roles) for name, entry in self._entries("users")]
        return AccessTable(self._with_own_certificates(users), roles)

    def _entries(self, kind: str) -> list[tuple[str, Mapping[str, Any]]]:
        section = self._document.get(kind, {})
        if not isinstance(section, dict):
            self._fail((kind,), f"{kind} is no table", f"write [{kind}.NAME] above each of its entries")
        for name, entry in section.items():
            if not is_name(name):
                self._fail((kind, name), f"{name!r} cannot be a name", f"allowed are {NAME_FORM}")
            if not isinstance(entry, dict):
                self._fail((kind, name), "it is no table", f"write [{kind}.{name}] above its keys")
        return list(section.items())

    def _role(self, name: str, entry: Mapping[str, Any]) -> AccessRole:
        path = ("roles", name)
        self._only(entry, _ROLE_KEYS, path)
        patterns = {}
        for key in ("publish", "subscribe", "groups"):
            patterns[key] = self._texts(entry, (*path, key))
            for text in patterns[key]:
                if not is_pattern(text):
                    self._fail((*path, key), f"{text!r} is no pattern", f"allowed is {WRONG}")
        abilities = self._texts(entry, (*path, "allow"))
        for ability in abilities:
            if ability not in ABILITIES:
                self._fail((*path, "allow"), f"{ability!r} is nothing to allow", _nearest(ability, sorted(ABILITIES)))
        return AccessRole(name, **patterns, allow=frozenset(map(Action, abilities)))

    def _user(self, name: str, entry: Mapping[str, Any], roles: Mapping[str, AccessRole]) -> Principal:
        path = ("users", name)
        self._only(entry, _USER_KEYS, path)
        secret, certificate = (self._text(entry, (*path, key)) for key in ("secret", "certificate"))
        if secret is None and certificate is None:
            self._fail(path, "there is neither secret nor certificate", f"`tandem user passwd {name}` makes a secret")
        if secret is not None and not is_hash(secret):
            self._fail((*path, "secret"), "it is no hash of a secret", f"allowed is {FORM}")
        if certificate == "":
            self._fail((*path, "certificate"), "it is empty", "write the common name of the user's certificate")
        own = self._texts(entry, (*path, "roles"))
        for role in own:
            if role not in roles:
                self._fail((*path, "roles"), f"there is no role {role}", _nearest(role, sorted(roles)))
        return Principal(name, (roles[role] for role in dict.fromkeys(own)), secret, certificate)

    def _with_own_certificates(self, users: list[Principal]) -> list[Principal]:
        owners: dict[str, str] = {}
        for user in users:
            if user.certificate is not None:
                owner = owners.setdefault(user.certificate, user.name)
                if owner != user.name:
                    path = ("users", user.name, "certificate")
                    self._fail(path, f"user {owner} has the same certificate", "each needs one of its own")
        return users

    def _text(self, entry: Mapping[str, Any], path: tuple[str, ...]) -> str | None:
        value = entry.get(path[-1])
        if value is not None and not isinstance(value, str):
            self._fail(path, "it is no text", 'write it in quotes: "…"')
        return value

    def _texts(self, entry: Mapping[str, Any], path: tuple[str, ...]) -> tuple[str, ...]:
        value = entry.get(path[-1], [])
        if not isinstance(value, list) or not all(isinstance(one, str) for one in value):
            self._fail(path, "it is no list of texts", f'write {path[-1]} = ["…", "…"]')
        return tuple(value)

    def _only(self, entry: Mapping[str, Any], known: Iterable[str], path: tuple[str, ...]) -> None:
        known = list(known)
        for key in entry:
            if key not in known:
                self._fail((*path, key), "nothing is called so here", _nearest(key, known))

    def _fail(self, path: tuple[str, ...], what: str, remedy: str) -> NoReturn:
        line = self._line(path)
        place = f"{self._name} line {line}" if line else self._name
        raise AccessFileError(f"{place}: {'.'.join(path)}: {what}", remedy=remedy)

    def _line(self, path: tuple[str, ...]) -> int | None:
        """Where a key stands, if it is written the usual way: a header of two names, and keys below it."""
        header, key = path[:2], path[2:3]
        found: int | None = None
        inside = False
        for number, line in enumerate(self._lines, 1):
            stripped = line.strip()
            if stripped.startswith("["):
                inside = _names(stripped.partition("]")[0].strip("[ "))[: len(header)] == header
                if inside and not key:
                    return number
                found = number if inside and found is None else found
            elif (inside and key and _key(stripped) == key[0]) or (len(path) == 1 and _key(stripped) == path[0]):
                return number
        return found


def _names(header: str) -> tuple[str, ...]:
    return tuple(part.strip().strip("\"'") for part in re.findall(r'"[^"]*"|\'[^\']*\'|[^.]+', header))


def _key(line: str) -> str:
    return line.partition("=")[0].strip().strip("\"'") if "=" in line else ""


def _nearest(name: str, known: list[str]) -> str:
    """What might have been meant, and what there is."""
    lowered = {one.lower(): one for one in known}
    close = difflib.get_close_matches(name.lower(), lowered, n=1, cutoff=0.6)
    return f"did you mean {lowered[close[0]]}?" if close else f"there are {', '.join(known)}"
