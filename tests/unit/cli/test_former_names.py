"""What commands were called before they had nouns: it works as the present name does, and no list has it."""

import os
import subprocess
import sys

import pytest
import typer.core
import typer.main

from tandemmq.cli.commands import FORMER, CommandsByName
from tandemmq.cli.main import app, main

NOWHERE = "/no/such/directory"

CALLS = [
    *[([name, "--help"], 0) for name in FORMER],
    *[([name, "--no-such-option"], 2) for name in FORMER],
    (["inspect", NOWHERE], 1),
    (["inspect", NOWHERE, "--json"], 1),
    (["audit"], 2),
    (["accept-loss", "--data", NOWHERE, "--json"], 1),
    (["reseed", "--data", NOWHERE], 1),
    (["replicas", "--address", "127.0.0.1:1"], 1),
    (["query", "orders"], 2),
    (["view", "zzz", "--address", "127.0.0.1:1", "--json"], 1),
    (["offsets", "--address", "127.0.0.1:1"], 1),
    (["store", "--set", "flushDisktype=SYNC_FLUSH"], 2),
    (["--context", "", "promote", "--role", "KING"], 2),
]


def told_by(words: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> tuple[int, str]:
    monkeypatch.setattr(sys, "argv", ["tandem", *words])
    with pytest.raises(SystemExit) as ended:
        main()
    told = capsys.readouterr()
    assert isinstance(ended.value.code, int)
    return ended.value.code, told.out + told.err


def present(words: list[str]) -> list[str]:
    return [part for word in words for part in FORMER.get(word, (word,))]


@pytest.mark.parametrize(("words", "code"), CALLS, ids=[" ".join(words) for words, _ in CALLS])
def test_a_former_name_does_and_says_what_the_present_one_does(
    words: list[str], code: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    former = told_by(words, monkeypatch, capsys)
    assert former == told_by(present(words), monkeypatch, capsys)
    assert former[0] == code


def test_no_former_name_is_listed_and_each_has_a_present_one() -> None:
    root = typer.main.get_command(app)
    assert isinstance(root, typer.core.TyperGroup)
    assert not FORMER.keys() & set(CommandsByName())
    for noun, verb in FORMER.values():
        group = root.commands[noun]
        assert isinstance(group, typer.core.TyperGroup)
        assert verb in group.commands


def test_the_context_of_a_cluster_is_for_commands_that_call_one(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for words in (["inspect", NOWHERE], ["data", "inspect", NOWHERE]):
        assert "is no store directory" in told_by(["--context", "nobody", *words], monkeypatch, capsys)[1]
    for words in (["audit", "--pair"], ["data", "audit", "--pair"], ["replicas"], ["topic", "offsets"]):
        assert "there is no context nobody" in told_by(["--context", "nobody", *words], monkeypatch, capsys)[1]


def test_help_is_a_word_too(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    assert told_by(["help"], monkeypatch, capsys) == told_by(["--help"], monkeypatch, capsys)
    for words in (["send"], ["topic"], ["topic", "create"], ["promote"]):
        told = told_by(["help", *words], monkeypatch, capsys)
        assert told == told_by([*words, "--help"], monkeypatch, capsys)
        assert told[0] == 0


def completed(typed: str) -> set[str]:
    asked = {"_TANDEM_COMPLETE": "complete_bash", "COMP_WORDS": typed, "COMP_CWORD": str(typed.count(" "))}
    command = [sys.executable, "-m", "tandemmq.cli.main"]
    told = subprocess.run(command, env=os.environ | asked, capture_output=True, text=True, check=True)
    return set(told.stdout.split())


def test_a_shell_completes_verbs_of_nouns_and_options_of_former_names() -> None:
    assert completed("tandem re") == {"recall", "replica"}
    assert completed("tandem replica ") == {"list", "promote", "follow", "reseed"}
    assert completed("tandem promote --acc") == {"--accept-loss"}
