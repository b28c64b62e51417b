"""Contexts: clusters by name, so that a command needs neither addresses nor the names of secrets.

They lie in one JSON file of the user's, `contexts.json`, which holds paths of secrets and no secrets::

    {"current": "prod", "contexts": {"prod": {"server": "broker.example:8081", "user": "ann", "secret_file": "/…"}}}
"""

import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Self

from tandemmq.cli.talk.failures import CommandFailed, NotThere
from tandemmq.common.calling.addresses import host_of

FILE = "TANDEM_CONTEXTS_FILE"
"""Names another file."""
CONTEXT = "TANDEM_CONTEXT"
"""Names a context; empty: none is used."""
SERVER = "TANDEM_SERVER"
"""One address of a cluster, from which the others are found: `discovery.py`."""

ADDRESSES = ("TANDEM_ADDRESS", "TANDEM_ADMIN_ADDRESS", "TANDEM_REPLICATOR_ADDRESS")
_WHO = ("TANDEM_USER", "TANDEM_SECRET_FILE")
SECRET_HOSTS = "TANDEM_SECRET_HOSTS"
"""Where the secret of a context may go: `tandemmq.client.identity`, which takes long to import."""
_TLS = ("TANDEM_TLS_CA", "TANDEM_TLS_CERT", "TANDEM_TLS_KEY")


class NoContext(NotThere):
    """There is no context of that name."""


class UnreadableContexts(CommandFailed):
    """The file of the contexts cannot be read, or is none."""


class HomeUnknown(UnreadableContexts):
    """The user has no home directory, so there is no place for the file."""

    remedy = f"{FILE} names one"


@dataclass(frozen=True)
class ClusterContext:
    """A cluster, and who we are there. Empty texts are what was not given; files are absolute paths."""

    server: str
    user: str = ""
    secret_file: str = ""
    tls_ca: str = ""
    tls_cert: str = ""
    tls_key: str = ""


@dataclass
class Contexts:
    """What the file has."""

    current: str = ""
    """The one that is used where none is named; empty: none."""
    by_name: dict[str, ClusterContext] = field(default_factory=dict)

    @classmethod
    def read(cls, path: Path) -> Self:
        """Empty where there is no file. Raises UnreadableContexts."""
        try:
            document = json.loads(path.read_text())
            found = {str(name): _context(one) for name, one in document["contexts"].items()}
            return cls(str(document.get("current", "")), found)
        except FileNotFoundError:
            return cls()
        except OSError as error:
            raise UnreadableContexts(f"the contexts in {path} cannot be read: {error.strerror}") from error
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise UnreadableContexts(
                f"{path} is no file of contexts", remedy="move it away, and add them with `tandem context add`"
            ) from error

    def text(self) -> str:
        """For the file."""
        contexts = {name: {k: v for k, v in asdict(one).items() if v} for name, one in sorted(self.by_name.items())}
        return json.dumps({"current": self.current, "contexts": contexts}, indent=2, ensure_ascii=False) + "\n"

    def of(self, name: str) -> ClusterContext:
        """The one of that name. Raises NoContext, with those there are."""
        if name not in self.by_name:
            known = f"there are: {', '.join(sorted(self.by_name))}" if self.by_name else "there are none yet"
            raise NoContext(f"there is no context {name}; {known}", remedy="`tandem context add` makes one")
        return self.by_name[name]


def contexts_file(environment: Mapping[str, str] | None = None) -> Path:
    """Where they are: TANDEM_CONTEXTS_FILE, or in the user's configuration directory. Raises HomeUnknown."""
    found = os.environ if environment is None else environment
    if named := found.get(FILE):
        return Path(named)
    try:
        return Path(found.get("XDG_CONFIG_HOME") or Path.home() / ".config") / "tandem" / "contexts.json"
    except RuntimeError as error:
        raise HomeUnknown("no file of contexts: this user has no home directory") from error


def variables_of(context: ClusterContext, environment: Mapping[str, str]) -> dict[str, str]:
    """What a context adds to an environment. What that has of a kind (where, who, TLS) it has alone."""
    told = {SERVER: context.server} if not any(map(environment.get, (SERVER, *ADDRESSES))) else {}
    for group, values in (
        (_WHO, (context.user, context.secret_file)),
        (_TLS, (context.tls_ca, context.tls_cert, context.tls_key)),
    ):
        if not any(map(environment.get, group)):
            told.update({name: value for name, value in zip(group, values, strict=True) if value})
    if _WHO[0] in told:
        told[SECRET_HOSTS] = ",".join(dict.fromkeys(map(host_of, context.server.split(","))))
    return told


def choose(name: str | None, environment: Mapping[str, str]) -> ClusterContext | None:
    """The context that a call is for: the named one, that of TANDEM_CONTEXT, the current one; None: none.

    Raises NoContext, UnreadableContexts.
    """
    name = environment.get(CONTEXT) if name is None else name
    if name == "" or (name is None and not _may_be_there(environment)):
        return None
    contexts = Contexts.read(contexts_file(environment))
    name = name or contexts.current
    return contexts.of(name) if name else None


def _may_be_there(environment: Mapping[str, str]) -> bool:
    """False where nobody has named a file and the user has no directory for it: no home, or that of somebody else."""
    try:
        return bool(environment.get(FILE)) or os.access(contexts_file(environment).parent, os.X_OK)
    except HomeUnknown:
        return False


def _context(value: Mapping[str, str]) -> ClusterContext:
    known = {one.name for one in fields(ClusterContext)}
    return ClusterContext(**{name: str(text) for name, text in value.items() if name in known})
