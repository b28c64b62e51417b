"""`tandem user`: users, secrets and roles in access.toml, the file that services have as accessFile."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tandemmq.cli.nouns.calls import noun
from tandemmq.cli.talk.failures import FAILED, CommandFailed, NotThere
from tandemmq.cli.talk.options import Json
from tandemmq.cli.talk.output import Output
from tandemmq.common.counted import counted

if TYPE_CHECKING:
    from tandemmq.common.access.needs import Need
    from tandemmq.common.access.principal import Principal
    from tandemmq.common.access.roles import AccessRole
    from tandemmq.common.access.table import AccessTable

app = noun("user", "Who may do what: users, secrets, roles in the access file.")

_SHORTEST = 8
_LONGEST = 512

AccessFile = Annotated[
    Path,
    typer.Option("--file", "-f", envvar="TANDEM_ACCESS_FILE", metavar="FILE", help="The access file, access.toml."),
]
Name = Annotated[str, typer.Argument(metavar="USER", help="Name of the user.")]
NewSecretFile = Annotated[
    Path | None,
    typer.Option("--secret-file", metavar="FILE", help="Holds the new secret and nothing else."),
]
Generate = Annotated[
    bool, typer.Option("--generate", help="Make a secret that nobody guesses, and print it: this once only.")
]


@app.command("add")
def add_user(
    name: Name,
    roles: Annotated[
        list[str] | None,
        typer.Option("--role", "-r", metavar="ROLE", help="What the user may do; `roles` shows them. Repeatable."),
    ] = None,
    secret_file: NewSecretFile = None,
    generate: Generate = False,
    certificate: Annotated[
        str | None,
        typer.Option(
            "--certificate",
            metavar="CN",
            help="Common name of the user's client certificate (mTLS): who shows it needs no secret.",
        ),
    ] = None,
    *,
    file: AccessFile,
    as_json: Json = False,
) -> None:
    """Add a user; make the file if there is none. Asks for the secret, unless another option says where it comes from.

    With --json: one document, {"user", "roles", "file"}; "secret" too with --generate.
    """
    from tandemmq.cli.access.access_document import edited, read_document

    read_document(file, create=True).check_new(name)
    wanted = secret_file is not None or generate or certificate is None
    secret = _new_secret(secret_file, generate) if wanted else None
    text = None if secret is None else _hashed(secret, generate)
    with edited(file, create=True) as document:
        document.add(name, text, certificate, roles or ())
    facts: dict[str, Any] = {"user": name, "roles": roles or [], "file": str(file)}
    _tell(as_json, facts, f"Added {name} to {file}", secret if generate else None)
    if not roles:
        Output(as_json=as_json).remark(f"It may do nothing yet: tandem user roles {name} ROLE …")


@app.command("remove")
def remove_user(name: Name, *, file: AccessFile, as_json: Json = False) -> None:
    """Remove a user; services refuse it within a second.

    With --json: one document, {"user", "file"}.
    """
    from tandemmq.cli.access.access_document import edited
    from tandemmq.cli.access.signing_file import change
    from tandemmq.common.access.signing import signing_file

    with edited(file) as document:
        document.remove(name)
    change(signing_file(file.resolve()), name, None)  # a new user of the name must not have it
    _tell(as_json, {"user": name, "file": str(file)}, f"Removed {name} from {file}")


@app.command("passwd")
def change_secret(
    name: Name,
    secret_file: NewSecretFile = None,
    generate: Generate = False,
    *,
    file: AccessFile,
    as_json: Json = False,
) -> None:
    """Give a user another secret.

    The old one stops to work within a second. Asks, unless an option says otherwise.

    With --json: one document, {"user", "file"}; "secret" too with --generate.
    """
    from tandemmq.cli.access.access_document import edited, read_document

    read_document(file).check_known(name)
    secret = _new_secret(secret_file, generate)
    text = _hashed(secret, generate)
    with edited(file) as document:
        document.set_secret(name, text)
    facts = {"user": name, "file": str(file)}
    _tell(as_json, facts, f"{name} has another secret now", secret if generate else None)


@app.command("signing-secret")
def set_signing_secret(
    name: Name,
    secret_file: NewSecretFile = None,
    generate: Generate = False,
    remove: Annotated[bool, typer.Option("--remove", help="Take the signing secret away.")] = False,
    *,
    file: AccessFile,
    as_json: Json = False,
) -> None:
    """Give a user a secret to sign with (RocketMQ 5).

    Its clients send the user as access key; this is the secret key.

    It is kept readable in access.signing.toml, for its owner only: signatures cannot be checked with a hash.

    With --json: one document, {"user", "file"}; "secret" too with --generate.
    """
    from tandemmq.cli.access.access_document import read_document
    from tandemmq.cli.access.signing_file import change
    from tandemmq.common.access.signing import signing_file

    read_document(file).check_known(name)
    if remove and (generate or secret_file is not None):
        raise typer.BadParameter("nothing else with --remove", param_hint="--remove")
    secret = None if remove else _new_secret(secret_file, generate)
    path = signing_file(file.resolve())
    change(path, name, secret)
    facts: dict[str, Any] = {"user": name, "file": str(path)}
    told = f"{name} signs with no secret now" if remove else f"{name} signs with this secret from now on, by {path}"
    _tell(as_json, facts, told, secret if generate else None)


@app.command("list")
def list_users(file: AccessFile, as_json: Json = False) -> None:
    """List the users with their roles.

    And how they prove who they are.

    With --json: one document, {"users": [{"user", "roles", "secret": true or false, "certificate"}]}.
    """
    users = sorted(_table(file).principals.values(), key=lambda one: one.name)
    output = Output(as_json=as_json)
    if as_json:
        rows = [
            {"user": one.name, "roles": one.roles, "secret": one.secret is not None, "certificate": one.certificate}
            for one in users
        ]
        output.document({"users": rows})
        return
    output.table(
        ("user", "roles", "secret", "certificate"),
        [
            (one.name, ", ".join(one.roles) or "-", "yes" if one.secret else "-", one.certificate or "-")
            for one in users
        ],
    )
    if not users:
        output.remark("There are no users.")


@app.command("roles")
def show_roles(
    name: Annotated[
        str | None, typer.Argument(metavar="[USER]", help="Whose roles; none: all roles there are.")
    ] = None,
    roles: Annotated[
        list[str] | None, typer.Argument(metavar="[ROLE]...", help="What the user has from now on, and nothing else.")
    ] = None,
    *,
    file: AccessFile,
    as_json: Json = False,
) -> None:
    """Show roles and what they allow; give a user others.

    Without a user all roles, with one the user's. Write own roles into the file.

    With --json: one document, {"roles": [{"role", "built_in", "publish", "subscribe", "groups", "allow"}]}; with USER
    {"user", "roles"}.
    """
    from tandemmq.cli.access.access_document import edited

    if name is not None and roles:
        with edited(file) as document:
            document.set_roles(name, roles)
    table = _table(file)
    output = Output(as_json=as_json)
    if name is not None:
        own = list(_principal(table, name, file).roles)
        _tell(as_json, {"user": name, "roles": own}, f"{name}: {', '.join(own) or 'no roles'}")
    elif as_json:
        output.document({"roles": [_role(one) for one in table.roles.values()]})
    else:
        columns = ("publish", "subscribe", "groups", "allow")
        rows = [
            (one["role"], *(", ".join(one[key]) or "-" for key in columns)) for one in map(_role, table.roles.values())
        ]
        output.table(("role", *columns), rows)


@app.command("check")
def check_access(
    name: Annotated[str | None, typer.Argument(metavar="[USER]", help="Who; none: only read the file.")] = None,
    action: Annotated[
        str | None,
        typer.Argument(
            metavar="[ACTION]", help="publish, subscribe, group, view, manage, operate or internal; none: all of them."
        ),
    ] = None,
    resource: Annotated[
        str | None, typer.Argument(metavar="[TOPIC|GROUP]", help="For publish, subscribe and group.")
    ] = None,
    *,
    file: AccessFile,
    as_json: Json = False,
) -> None:
    """Say whether the file is good, and what a user may do.

    As in: tandem user check alice publish orders.

    Exit code 1 if the user may not.

    With --json: one document, {"file", "users"}; with USER {"user", "roles", "publish", "subscribe", "groups",
    "allow"}; with ACTION {"user", "action", "resource", "allowed", "reason"}.
    """
    table = _table(file)
    output = Output(as_json=as_json)
    if name is None:
        users = len(table.principals)
        _tell(as_json, {"file": str(file), "users": users}, f"{file} is good: {counted(users, 'user')}")
        return
    principal = _principal(table, name, file)
    if action is None:
        _show_principal(output, principal, table)
        return
    need = _need(action, resource)
    allowed = principal.may(need)
    reason = "" if allowed else principal.refusal(need).explain()
    if as_json:
        facts = {"user": name, "action": action, "resource": resource or "", "allowed": allowed, "reason": reason}
        output.document(facts)
    else:
        output.say(f"user {name} may {need.told()}" if allowed else reason)
    if not allowed:
        raise typer.Exit(FAILED)


def _table(file: Path) -> "AccessTable":
    from tandemmq.cli.access.access_document import read_document

    return read_document(file).table


def _principal(table: "AccessTable", name: str, file: Path) -> "Principal":
    principal = table.principals.get(name)
    if principal is None:
        raise NotThere(f"there is no user {name} in {file}", remedy="`tandem user list` shows who there is")
    return principal


def _need(action: str, resource: str | None) -> "Need":
    from tandemmq.common.access.needs import ABILITIES, Action, Need

    try:
        kind = Action(action.lower())
    except ValueError:
        known = ", ".join(Action)
        raise typer.BadParameter(f"{action!r} is none of {known}", param_hint="ACTION") from None
    if kind in ABILITIES:
        if resource is not None:
            raise typer.BadParameter(f"{kind} is not about a topic or group", param_hint="TOPIC|GROUP")
        return Need(kind)
    if resource is None:
        raise typer.BadParameter(f"{kind} needs the name of a {'group' if kind is Action.GROUP else 'topic'}")
    return Need(kind, resource)


def _show_principal(output: Output, principal: "Principal", table: "AccessTable") -> None:
    """All that a user's roles allow, put together."""
    roles = [_role(table.roles[name]) for name in principal.roles]
    keys = ("publish", "subscribe", "groups", "allow")
    allowed = {key: list(dict.fromkeys(text for role in roles for text in role[key])) for key in keys}
    if output.as_json:
        output.document({"user": principal.name, "roles": list(principal.roles), **allowed})
        return
    pairs = [("roles", ", ".join(principal.roles) or "-")]
    pairs += [(key, ", ".join(texts) or "-") for key, texts in allowed.items()]
    output.pairs(pairs, principal.name)


def _role(role: "AccessRole") -> dict[str, Any]:
    from tandemmq.common.access.roles import BUILT_IN

    return {
        "role": role.name,
        "built_in": role.name in BUILT_IN,
        "publish": list(role.publish),
        "subscribe": list(role.subscribe),
        "groups": list(role.groups),
        "allow": sorted(role.allow),
    }


def _new_secret(file: Path | None, generate: bool) -> str:
    """From where the options say, or from the keyboard. Raises CommandFailed, UnreadableSecret."""
    from tandemmq.common.access.scrypt import generate as generated
    from tandemmq.common.identity.credentials import read_secret

    if file is not None and generate:
        raise typer.BadParameter("either --secret-file or --generate", param_hint="--secret-file")
    if generate:
        return generated()
    if file is not None:
        secret = read_secret(file, "--secret-file")
    elif sys.stdin.isatty():
        secret = typer.prompt("Secret", hide_input=True, confirmation_prompt=True, err=True)
    else:
        raise CommandFailed("nobody can be asked for the secret here: give --secret-file FILE, or --generate")
    if not _SHORTEST <= len(secret) <= _LONGEST or secret != secret.strip() or not secret.isprintable():
        raise CommandFailed(
            f"the secret must have {_SHORTEST} to {_LONGEST} printable characters, without blanks around it",
            remedy="--generate makes a good one",
        )
    return secret


def _hashed(secret: str, generated: bool) -> str:
    from tandemmq.common.access.scrypt import CHOSEN, GENERATED, hash_secret

    return hash_secret(secret, GENERATED if generated else CHOSEN)


def _tell(as_json: bool, facts: dict[str, Any], text: str, secret: str | None = None) -> None:
    """What was done; a generated secret alone on stdout, so that it can go into a file."""
    output = Output(as_json=as_json)
    if as_json:
        output.document({**facts, "secret": secret} if secret is not None else facts)
    elif secret is None:
        output.say(f"{text}.")
    else:
        output.remark(f"{text}. This is the secret; it is shown this once:")
        output.say(secret)
