"""Where each command is. It is imported, and made, when it is asked for: a call needs one of fifty."""

from collections.abc import Iterator, MutableMapping
from importlib import import_module
from typing import Any

import typer
import typer.core

from tandemmq.cli.examples import epilog_of

_COMMANDS = {
    "processes": ("up", "store", "replicator", "metasync", "admin", "gateway", "names"),
    "messaging.send": ("send",),
    "messaging.recall": ("recall",),
    "messaging.consume": ("consume", "worker"),
    "messaging.pull": ("pull",),
    "messaging.find": ("query", "view"),
    "messaging.offsets": ("offsets",),
    "files.inspect": ("inspect",),
    "processes.settings": ("settings",),
    "pair.replication": ("replicas", "promote", "follow"),
    "pair.reseed": ("reseed",),
    "pair.accept_loss": ("accept-loss",),
    "files.rebuild": ("rebuild",),
    "files.audit": ("audit",),
    "files.export": ("export",),
    "processes.check": ("check",),
    "messaging.top": ("top",),
    "messaging.bench": ("bench",),
    "completion": ("completion",),
    "demo.command": ("demo",),
}
"""By module; those of `processes` have one each."""

_NOUNS = {
    **{noun: f"nouns.{noun}" for noun in ("cluster", "node", "topic", "group", "client", "message", "job")},
    "user": "access.user",
    "context": "access.context",
}
"""With verbs after them, and by them."""

SECTIONS = {
    "To begin with": ("up", "demo", "context", "completion"),
    "Messages": ("send", "recall", "consume", "worker", "pull", "query", "view", "offsets", "message", "bench"),
    "A cluster": ("check", "top", "cluster", "node", "topic", "group", "client", "job", "user", "settings"),
    "Two nodes": ("replicas", "promote", "follow", "reseed"),
    "The files of a store": ("inspect", "audit", "rebuild", "export", "accept-loss"),
    "Services, each by itself": _COMMANDS["processes"][1:],
}
"""Of the help: what a person looks for together."""


OF_THIS_MACHINE = frozenset({*_COMMANDS["processes"], "inspect", "settings", "completion", "demo", "user", "context"})
"""Commands that call no cluster of the user's: contexts are nothing to them."""


class CommandsByName(MutableMapping[str, Any]):
    """All commands, each of which is made when it is looked at."""

    def __init__(self) -> None:
        self._modules = {
            name: f"{module}.{name}" if module == "processes" else module
            for module, names in _COMMANDS.items()
            for name in names
        } | _NOUNS
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
        around.command()(getattr(module, name.replace("-", "_")))
    made = typer.main.get_command(around)
    assert isinstance(made, typer.core.TyperGroup)
    command = made.commands[name]
    for typed, one in _verbs_of(name, command):
        one.epilog = epilog_of(typed)
    return command


def _verbs_of(name: str, command: Any) -> list[tuple[str, Any]]:
    """The commands that can be typed, with what is typed for each."""
    if name in _NOUNS:
        return [(f"{name} {verb}", one) for verb, one in command.commands.items()]
    return [(name, command)]
