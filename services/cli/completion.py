"""`tandem completion`: what a shell needs to complete commands and options."""

from enum import StrEnum
from typing import Annotated

import typer

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
    from typer.completion import get_completion_script  # type: ignore[attr-defined]

    script = get_completion_script(prog_name="tandem", complete_var="_TANDEM_COMPLETE", shell=shell.value)
    output = Output(as_json=as_json)
    if as_json:
        output.document({"shell": shell.value, "script": script})
    else:
        output.say(script)
