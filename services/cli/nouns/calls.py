"""What the nouns share: the admin service, its options, its answers as JSON."""

import base64
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tandemmq.common.settings import default_ports

if TYPE_CHECKING:
    from google.protobuf.message import Message

    from tandemmq.admin.v1.admin_pb2_grpc import AdminStub

DEFAULT_ADMIN_ADDRESS = f"127.0.0.1:{default_ports.ADMIN}"

AdminAddress = Annotated[
    str,
    typer.Option(
        "--address", envvar="TANDEM_ADMIN_ADDRESS", metavar="HOST:PORT", help="Where the admin service answers."
    ),
]

Broker = Annotated[
    str, typer.Option("--broker", "-b", metavar="NAME", help="One broker by its name; without it, all of them.")
]

Match = Annotated[
    str, typer.Argument(metavar="[PART]", help="A part of the name, or a pattern with * and ?; without it, all.")
]

Limit = Annotated[int, typer.Option("--limit", "-n", min=0, metavar="N", help="At most N; 0: all.")]

Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do it without asking.")]

DryRun = Annotated[bool, typer.Option("--dry-run", help="Only say what would be done.")]

PAGE = 1000
"""The most that admin gives at a time."""


def noun(name: str, text: str) -> typer.Typer:
    """The group of a noun's commands."""
    return typer.Typer(name=name, help=text, no_args_is_help=True, rich_markup_mode=None)


@contextmanager
def admin_at(address: str) -> "Iterator[AdminStub]":
    """Give a stub of the admin service. Raises WrongUsage for no address, CallFailed for a call that fails."""
    from tandemmq.admin.v1.admin_pb2_grpc import AdminStub
    from tandemmq.cli.talk.connection import ADMIN, connect_to

    with connect_to(ADMIN, address) as channel:
        yield AdminStub(channel)


def read_pages(ask: Callable[[str, int], Any], rows: str, limit: int) -> tuple[list[Any], int]:
    """Rows of as many pages as there are, or up to `limit` rows (0: all); and how many there are in all.

    `ask(after, most)` gives a page, an answer with the fields `next`, `total` and the one called `rows`.
    """
    found: list[Any] = []
    after = ""
    while True:
        page = ask(after, min(PAGE, limit - len(found)) if limit else PAGE)
        found += getattr(page, rows)
        after = page.next
        if not after or (limit and len(found) >= limit):
            return found, page.total


def document(message: "Message") -> dict[str, Any]:
    """An answer as JSON: every field by its name in the contract, numbers as numbers, enum values by name.

    Fields that may be unset are left out then; bytes are text where they are UTF-8, else `<name>_base64`.
    """
    told: dict[str, Any] = {}
    for field in message.DESCRIPTOR.fields:
        if field.has_presence and not message.HasField(field.name):
            continue
        value = getattr(message, field.name)
        if field.type == field.TYPE_BYTES:
            told.update(_bytes(field.name, value))
        else:
            told[field.name] = _value(field, value)
    return told


def enum_name(message: "Message", field: str) -> str:
    """Name of an enum's value, for people: `dead letter`."""
    return str(document(message)[field]).lower().replace("_", " ")


def confirm(what: str, *, yes: bool, as_json: bool) -> None:
    """Ask before something is changed for good; programs say --yes. Raises typer.Abort, CommandFailed."""
    import sys

    from tandemmq.cli.talk.failures import CommandFailed

    if yes:
        return
    if as_json or not sys.stdin.isatty():
        raise CommandFailed(f"Nothing was done. {what} takes --yes where nobody can be asked.")
    typer.confirm(f"{what}?", abort=True, err=True)


def _value(field: Any, value: Any) -> Any:
    if field.message_type is not None and field.message_type.GetOptions().map_entry:
        inner = field.message_type.fields_by_name["value"]
        return {str(key): _value(inner, value[key]) for key in sorted(value)}
    if _is_repeated(field):
        return [_one(field, one) for one in value]
    return _one(field, value)


def _is_repeated(field: Any) -> bool:
    """Fields of protobuf 5 have a label only, those of protobuf 7 have none."""
    return bool(field.is_repeated if hasattr(field, "is_repeated") else field.label == field.LABEL_REPEATED)


def _one(field: Any, value: Any) -> Any:
    if field.message_type is not None:
        return document(value)
    if field.enum_type is not None:
        known = field.enum_type.values_by_number.get(value)
        return known.name if known is not None else value
    return value


def _bytes(name: str, value: bytes) -> dict[str, str]:
    try:
        return {name: value.decode()}
    except UnicodeDecodeError:
        return {f"{name}_base64": base64.b64encode(value).decode()}


def comma(names: Sequence[str], most: int = 3) -> str:
    """Names for a cell of a table: `a, b, c and 4 more`."""
    shown = ", ".join(names[:most])
    return shown if len(names) <= most else f"{shown} and {len(names) - most} more"
