"""`tandem context`: clusters by name, and which of them is used where none is named."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from tandemmq.cli.access.replacing import replacing
from tandemmq.cli.nouns.calls import noun
from tandemmq.cli.talk.connection import check_addresses
from tandemmq.cli.talk.contexts import ClusterContext, Contexts, UnreadableContexts, contexts_file
from tandemmq.cli.talk.failures import CommandFailed, WrongUsage
from tandemmq.cli.talk.options import Json
from tandemmq.cli.talk.output import Output

app = noun("context", "Clusters by name: where they are, and who you are there.")


def known_names(incomplete: str) -> list[str]:
    """Contexts that begin so, for a shell."""
    try:
        return sorted(name for name in Contexts.read(contexts_file()).by_name if name.startswith(incomplete))
    except CommandFailed:
        return []


Name = Annotated[str, typer.Argument(metavar="NAME", help="Name of the context.")]
Known = Annotated[str, typer.Argument(metavar="NAME", help="Name of the context.", autocompletion=known_names)]


def _file(flag: str, text: str) -> Any:
    return typer.Option(flag, metavar="FILE", help=text)


@app.command("add")
def add_context(
    name: Name,
    server: Annotated[
        str,
        typer.Option(
            "--server",
            metavar="HOST:PORT",
            help="One address of the cluster, of a store or its admin: the others are found from there. Several with "
            "commas between, if one may be away.",
        ),
    ],
    user: Annotated[str, typer.Option("--user", metavar="NAME", help="Who calls.")] = "",
    secret_file: Annotated[Path | None, _file("--secret-file", "Holds that user's secret; its path is kept.")] = None,
    tls_ca: Annotated[Path | None, _file("--tls-ca", "Certificates (PEM) of those who sign the services'.")] = None,
    tls_cert: Annotated[Path | None, _file("--tls-cert", "Our own (PEM).")] = None,
    tls_key: Annotated[Path | None, _file("--tls-key", "The private key (PEM) of --tls-cert.")] = None,
    use: Annotated[bool, typer.Option("--use", help="Use it from now on; the first one is used in any case.")] = False,
    as_json: Json = False,
) -> None:
    """Add a context, or change what it says.

    The file has names, addresses and paths of secrets, never a secret. It is ~/.config/tandem/contexts.json, or what
    TANDEM_CONTEXTS_FILE names.

    With --json: one document, {"context", "current", "file", "server", ...}.
    """
    check_addresses(server)
    _check_name(name)
    _check_pair("--user", user, "--secret-file", secret_file)
    _check_pair("--tls-cert", tls_cert, "--tls-key", tls_key)
    made = ClusterContext(server, user, *map(_path, (secret_file, tls_ca, tls_cert, tls_key)))
    with _changed() as contexts:
        is_new = name not in contexts.by_name
        contexts.by_name[name] = made
        if use or not contexts.current:
            contexts.current = name
    output = Output(as_json=as_json)
    if as_json:
        output.document(_document(name, made, contexts))
        return
    used = "; it is used from now on" if contexts.current == name else f"; `tandem context use {name}` uses it"
    output.say(f"{'Added' if is_new else 'Changed'} {name}{used}.")


@app.command("use")
def use_context(name: Known, as_json: Json = False) -> None:
    """Use a context where none is named.

    With --json: one document, {"context", "current", "file", "server", ...}.
    """
    with _changed() as contexts:
        found = contexts.of(name)
        contexts.current = name
    output = Output(as_json=as_json)
    if as_json:
        output.document(_document(name, found, contexts))
    else:
        output.say(f"Calls go to {name} from now on: {found.server}.")


@app.command("list")
def list_contexts(as_json: Json = False) -> None:
    """List the contexts; the one that is used has a star.

    With --json: one document, {"file", "current", "contexts": [{"context", "server", ...}]}.
    """
    path = contexts_file()
    contexts = Contexts.read(path)
    output = Output(as_json=as_json)
    if as_json:
        rows = [{"context": name, **_given(one)} for name, one in sorted(contexts.by_name.items())]
        output.document({"file": str(path), "current": contexts.current, "contexts": rows})
        return
    output.table(
        ("", "context", "server", "user", "TLS"),
        [
            ("*" if name == contexts.current else "", name, one.server, one.user or "-", one.tls_ca or "-")
            for name, one in sorted(contexts.by_name.items())
        ],
    )
    if not contexts.by_name:
        output.say("There is none yet: tandem context add NAME --server HOST:PORT")


@app.command("remove")
def remove_context(name: Known, as_json: Json = False) -> None:
    """Remove a context. Files that it names stay.

    With --json: one document, {"context", "current", "file"}.
    """
    with _changed() as contexts:
        contexts.of(name)
        del contexts.by_name[name]
        was_current = contexts.current == name
        if was_current:
            contexts.current = ""
    output = Output(as_json=as_json)
    if as_json:
        output.document({"context": name, "current": contexts.current, "file": str(contexts_file())})
        return
    output.say(f"Removed {name}" + ("; none is used now." if was_current else "."))


@contextmanager
def _changed() -> Iterator[Contexts]:
    """The contexts, written when the block ends. Raises CommandFailed."""
    path = contexts_file()
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise UnreadableContexts(f"{path.parent} cannot be made: {error.strerror}") from error
    with replacing(path) as replace:
        contexts = Contexts.read(path)
        yield contexts
        replace(contexts.text())


def _check_name(name: str) -> None:
    if not name or not name.isprintable() or " " in name:
        raise WrongUsage(f"{name!r} is no name of a context: it has characters, and no blanks")


def _check_pair(first: str, one: object, second: str, other: object) -> None:
    if bool(one) != bool(other):
        raise WrongUsage(f"{first} and {second} go together")


def _path(path: Path | None) -> str:
    return "" if path is None else str(path.expanduser().absolute())


def _given(context: ClusterContext) -> dict[str, str]:
    return {name: value for name, value in asdict(context).items() if value}


def _document(name: str, context: ClusterContext, contexts: Contexts) -> dict[str, object]:
    return {"context": name, "current": contexts.current, "file": str(contexts_file()), **_given(context)}
