"""`tandem completion`: what a shell needs to complete commands and options."""

from enum import StrEnum
from importlib import import_module
from typing import Annotated, Any

import typer

from tandemmq.cli.talk.failures import CommandFailed
from tandemmq.cli.talk.options import Json
from tandemmq.cli.talk.output import Output


class Shell(StrEnum):
    """Shells that can complete."""

    BASH = "bash"
    ZSH = "zsh"
    FISH = "fish"


def completion(
    shell: Annotated[Shell, typer.Argument(metavar="bash|zsh|fish", help="Which shell.")], as_json: Json = False
) -> None:
    """Print the script that lets a shell complete commands.

    For bash: tandem completion bash > ~/.local/share/bash-completion/completions/tandem
    For zsh: tandem completion zsh > a file _tandem in a directory of $fpath
    For fish: tandem completion fish > ~/.config/fish/completions/tandem.fish

    With --json: one document, {"shell", "script"}.
    """
    script = _of_typer("get_completion_script")(prog_name="tandem", complete_var="_TANDEM_COMPLETE", shell=shell.value)
    output = Output(as_json=as_json)
    if as_json:
        output.document({"shell": shell.value, "script": script})
    else:
        output.say(script)


def answer_shells() -> None:
    """Let this process answer what a shell asks of it. Raises CommandFailed."""
    _of_typer("completion_init")()


def _of_typer(name: str) -> Any:
    """A function of typer that its documentation does not have. Raises CommandFailed."""
    try:
        return getattr(import_module("typer.completion"), name)
    except (ImportError, AttributeError) as error:
        raise CommandFailed(
            f"typer {typer.__version__} has no typer.completion.{name}",
            remedy="install a typer that TandemMQ was tested with (constraints.txt)",
        ) from error
