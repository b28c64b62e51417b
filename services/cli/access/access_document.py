"""AccessDocument: access.toml while it is edited.

A person's comments and order stay, and the file is replaced whole or not at all.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from tandemmq.cli.access.replacing import replacing
from tandemmq.cli.talk.failures import CommandFailed, NotThere
from tandemmq.common.access.file import NAME_FORM, is_name, parse_access, read_text
from tandemmq.common.errors import Kind

if TYPE_CHECKING:
    from tandemmq.common.access.table import AccessTable

_HEAD = """\
# Who may use this TandemMQ: see docs/security.md. `tandem user` edits this file and leaves comments alone;
# services that have it as accessFile follow within a second. Roles built in: viewer, operator, service, admin.

"""


class UserExists(CommandFailed):
    """There is such a user already."""

    kind = Kind.CONFLICT


class AccessDocument:
    """One file's text, and changes to it."""

    def __init__(self, path: Path, text: str) -> None:
        """Raises AccessFileError for a text that no service would take."""
        import tomlkit

        self._path = path
        parse_access(text, path.name)
        self._document = tomlkit.parse(text)

    @property
    def table(self) -> "AccessTable":
        """What the text says now. Raises AccessFileError."""
        return parse_access(self.text, self._path.name)

    @property
    def text(self) -> str:
        """The text as it is now."""
        import tomlkit

        return tomlkit.dumps(self._document)

    def check_new(self, name: str) -> None:
        """Whether there can be a new user of that name. Raises UserExists, CommandFailed."""
        if not is_name(name):
            raise CommandFailed(f"{name!r} cannot be a user's name: allowed are {NAME_FORM}")
        if name in self._users():
            remedy = f"`tandem user passwd {name}` changes its secret"
            raise UserExists(f"there is a user {name} already", remedy=remedy)

    def check_known(self, name: str) -> None:
        """Raises NotThere."""
        self._user(name)

    def add(self, name: str, secret: str | None, certificate: str | None, roles: Sequence[str]) -> None:
        """A new user, at the end of the file. Raises UserExists, CommandFailed."""
        import tomlkit
        from tomlkit.items import InlineTable

        self.check_new(name)
        users = self._document.get("users")
        entry = tomlkit.inline_table() if isinstance(users, InlineTable) else tomlkit.table()
        for key, value in (("secret", secret), ("certificate", certificate), ("roles", list(roles))):
            if value is not None:
                entry.add(key, value)
        if isinstance(users, InlineTable):
            users.append(name, entry)
            return
        # As text: tomlkit would put it after the last user, between a comment and what the comment is about.
        section = tomlkit.dumps({"users": {name: entry}}).strip()
        self._document = tomlkit.parse(f"{self.text.rstrip()}\n\n{section}\n")

    def remove(self, name: str) -> None:
        """Raises NotThere."""
        import tomlkit

        self._user(name)
        wanted = self._document.unwrap()
        del wanted["users"][name]
        without = tomlkit.parse(_cut(self.text, name))
        if without.unwrap().get("users", {}) == wanted["users"]:
            self._document = without
        else:  # it is not written in the usual way
            del cast(Any, self._document["users"])[name]

    def set_secret(self, name: str, secret: str) -> None:
        """Raises NotThere."""
        self._user(name)["secret"] = secret

    def set_roles(self, name: str, roles: Sequence[str]) -> None:
        """Exactly these. Raises NotThere."""
        self._user(name)["roles"] = list(roles)

    def _users(self) -> Mapping[str, Any]:
        return cast(Mapping[str, Any], self._document.get("users", {}))

    def _user(self, name: str) -> Any:
        users = self._users()
        if name not in users:
            raise NotThere(f"there is no user {name} in {self._path}", remedy="`tandem user list` shows who there is")
        return users[name]


def read_document(path: Path, *, create: bool = False) -> AccessDocument:
    """The file as it is; with `create` a new text if there is none. Raises NotThere, AccessFileError."""
    if not path.exists():
        if create:
            return AccessDocument(path, _HEAD)
        raise NotThere(f"there is no file {path}", remedy="`tandem user add` makes it")
    return AccessDocument(path, read_text(path))


@contextmanager
def edited(path: Path, *, create: bool = False) -> Iterator[AccessDocument]:
    """The document, written when the block ends without an error. Others who edit it wait.

    A new file is readable to its owner only; an existing one keeps owner and mode, so that services still can read it.

    Raises:
        NotThere: there is no file, and `create` is not set. AccessFileError: the text, before or after, is no good.
        CommandFailed: it cannot be written.
    """
    path = path.resolve()
    with replacing(path) as replace:
        document = read_document(path, create=create)
        yield document
        text = document.text
        parse_access(text, path.name)
        replace(text)


def _cut(text: str, name: str) -> str:
    """The text without a user's section; comments after it are about what follows, and stay."""
    is_header = re.compile(rf"\s*\[\s*users\s*\.\s*([\"']?){re.escape(name)}\1\s*\]\s*(#.*)?").fullmatch
    lines = text.splitlines(keepends=True)
    begin = next((at for at, line in enumerate(lines) if is_header(line.rstrip())), None)
    if begin is None:
        return text
    following = (at for at in range(begin + 1, len(lines)) if lines[at].lstrip().startswith("["))
    end = next(following, len(lines))
    while end > begin + 1 and (not lines[end - 1].strip() or lines[end - 1].lstrip().startswith("#")):
        end -= 1
    return "".join(lines[:begin] + lines[end:]).lstrip("\n")
