"""Where each command is. It is imported, and made, when it is asked for: a call needs one of many."""

from collections.abc import Iterator, MutableMapping
from importlib import import_module
from typing import Any

import typer
import typer.core

from tandemmq.cli.examples import epilog_of
from tandemmq.cli.plain_values import take_plain_values

_VERBS = {
    "up": "processes.up",
    "demo": "demo.command",
    "send": "messaging.send",
    "pull": "messaging.pull",
    "consume": "messaging.consume",
    "worker": "messaging.consume",
    "recall": "messaging.recall",
    "check": "processes.check",
    "top": "messaging.top",
    "bench": "messaging.bench",
    "completion": "completion",
    "settings": "processes.settings",
}
"""What stands by itself, with its module, which has a function of that name."""

_NOUNS = {
    **{noun: f"nouns.{noun}" for noun in ("cluster", "node", "topic", "group", "client", "message", "job")},
    "replica": "pair.replica",
    "data": "files.data",
    "serve": "processes.serve",
    "user": "access.user",
    "context": "access.context",
}
"""With verbs after them, and by them."""

SECTIONS = {
    "To begin with": ("up", "demo", "completion"),
    "Every day": ("send", "pull", "consume", "worker", "recall", "check", "top", "bench"),
    "And by nouns, each with verbs of its own": (
        *("message", "topic", "group", "client", "cluster", "node", "replica", "data", "job", "serve"),
        *("settings", "user", "context"),
    ),
}
"""Of the help: what a person looks for together."""

FORMER = {
    **{name: ("serve", name) for name in ("store", "replicator", "metasync", "admin", "gateway", "names")},
    **{name: ("data", name) for name in ("inspect", "audit", "rebuild", "export", "accept-loss")},
    **{name: ("replica", name) for name in ("promote", "follow", "reseed")},
    "replicas": ("replica", "list"),
    **{name: ("message", name) for name in ("query", "view")},
    "offsets": ("topic", "offsets"),
}
"""What commands were called before they had nouns, for scripts and units that call them so."""

_OF_THIS_MACHINE = {("data", "inspect")} | {
    (word,) for word in ("up", "demo", "completion", "serve", "settings", "user", "context")
}
"""Commands that call no cluster of the user's: contexts are nothing to them."""

_HELP = "help"

_TYPED = "tandemmq.cli.typed"
"""Where a call keeps its words."""


def calls_cluster(call: Any) -> bool:
    """Whether what is typed may call a cluster of the user's."""
    typed = call.meta.get(_TYPED, ())
    return not any(typed[: len(words)] == words for words in _OF_THIS_MACHINE)


class CommandsByName(MutableMapping[str, Any]):
    """All commands but former names, each of which is made when it is looked at."""

    def __init__(self) -> None:
        self._modules = _VERBS | _NOUNS
        self._made: dict[str, Any] = {}

    def __getitem__(self, name: str) -> Any:
        if name not in self._made:
            self._made[name] = _make(name, import_module(f"tandemmq.cli.{self._modules[name]}"))
        return self._made[name]

    def __setitem__(self, name: str, command: Any) -> None:
        self._modules[name], self._made[name] = "", command

    def __delitem__(self, name: str) -> None:
        del self._modules[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._modules)

    def __len__(self) -> int:
        return len(self._modules)

    def __contains__(self, name: object) -> bool:
        return name in self._modules


class RootGroup(typer.core.TyperGroup):
    """`tandem` itself."""

    def __init__(self, **attributes: Any) -> None:
        super().__init__(**attributes)
        self.commands = CommandsByName()
        take_plain_values(self)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """What is typed, by its present name; `help` before a command is --help after it."""
        if args == [_HELP]:
            typer.echo(ctx.get_help())
            ctx.exit()
        asked = [*args[1:], "--help"] if args[0] == _HELP else args
        words = [*FORMER.get(asked[0], asked[:1]), *asked[1:]]
        ctx.meta[_TYPED] = tuple(words)
        return super().resolve_command(ctx, words)

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """The list in the help, by sections."""
        width = max(map(len, self.commands))
        for title, names in SECTIONS.items():
            with formatter.section(title):
                room = formatter.width - width - 6
                formatter.write_dl(
                    [(f"{name:<{width}}", self.commands[name].get_short_help_str(room)) for name in names]
                )


def _make(name: str, module: Any) -> Any:
    """What typer makes of a function, or of a noun."""
    around = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)
    around.callback()(lambda: None)
    if name in _NOUNS:
        around.add_typer(module.app)
    else:
        around.command()(getattr(module, name))
    made = typer.main.get_command(around)
    assert isinstance(made, typer.core.TyperGroup)
    command = made.commands[name]
    take_plain_values(command)
    for typed, one in _verbs_of(name, command):
        one.epilog = epilog_of(typed)
        if one is not command:
            take_plain_values(one)
    return command


def _verbs_of(name: str, command: Any) -> list[tuple[str, Any]]:
    """The commands that can be typed, with what is typed for each."""
    if name in _NOUNS:
        return [(f"{name} {verb}", one) for verb, one in command.commands.items()]
    return [(name, command)]
