"""What a shell completes, by functions of typer that it does not document; and a typer that has changed them."""

import os
import subprocess
import sys

import pytest
import typer
import typer.completion

from tandemmq.cli.completion import Shell, answer_shells, completion
from tandemmq.cli.talk.failures import CommandFailed


def test_a_shell_gets_its_answer() -> None:
    asked = {"_TANDEM_COMPLETE": "complete_bash", "COMP_WORDS": "tandem se", "COMP_CWORD": "1"}
    command = [sys.executable, "-m", "tandemmq.cli.main"]
    told = subprocess.run(command, env=os.environ | asked, capture_output=True, text=True, check=True)
    assert {"send", "serve", "settings"} == set(told.stdout.split())


@pytest.mark.parametrize("shell", Shell)
def test_there_is_a_script_for_each_shell(shell: Shell, capsys: pytest.CaptureFixture[str]) -> None:
    completion(shell)
    assert "_TANDEM_COMPLETE" in capsys.readouterr().out


def test_a_typer_that_has_changed_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(typer.completion, "completion_init")
    monkeypatch.delattr(typer.completion, "get_completion_script")
    with pytest.raises(CommandFailed, match=rf"typer {typer.__version__} has no typer\.completion\.completion_init"):
        answer_shells()
    with pytest.raises(CommandFailed, match=r"get_completion_script") as caught:
        completion(Shell.BASH)
    assert "constraints.txt" in str(caught.value.remedy)
