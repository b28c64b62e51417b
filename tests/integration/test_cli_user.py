"""`tandem user`: editing access.toml without losing a person's comments, and what is refused."""

import io
import json
import os
import pty
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tandemmq.cli.access.access_document import AccessDocument, edited
from tandemmq.cli.main import main
from tandemmq.cli.talk.failures import CommandFailed, NotThere
from tandemmq.common.access.errors import AccessFileError
from tandemmq.common.access.file import parse_access
from tandemmq.common.access.scrypt import fits

HASH = "scrypt:n=1024,r=8,p=1:+5dvSRMoWmry2am+iu26eA==:xseE0zNbadmwOiJ9xoTtkINosiiIsRHw25Hqs50W5Ko="
"""Of `secret`; always the same, since names of tests are made of it."""

BY_HAND = f"""\
# our broker
[users.alice]   # the shop
secret = "{HASH}"   # changed in May
roles = ["orders"]

# read by the reports
[users.bob]
certificate = "bob.example"
roles = [
    "viewer",  # for now
]

# what the shop may
[roles.orders]
publish = ["orders*"]   # all of them
"""


class Tandem:
    """`tandem user …` in this process."""

    def __init__(self, patch: pytest.MonkeyPatch, captured: pytest.CaptureFixture[str]) -> None:
        self._patch = patch
        self._captured = captured

    def run(self, *arguments: str, file: Path | None, code: int = 0) -> tuple[str, str]:
        """What it says on stdout and stderr; nobody is there to be asked."""
        with self._patch.context() as patch:
            patch.delenv("TANDEM_ACCESS_FILE", raising=False)
            if file is not None:
                patch.setenv("TANDEM_ACCESS_FILE", str(file))
            patch.setattr(sys, "argv", ["tandem", "user", *arguments])
            patch.setattr(sys, "stdin", io.StringIO())
            with pytest.raises(SystemExit) as ended:
                main()
        said = self._captured.readouterr()
        assert (ended.value.code or 0) == code, said
        return said.out, said.err

    def document(self, *arguments: str, file: Path, code: int = 0) -> Any:
        """The JSON that it prints."""
        return json.loads(self.run(*arguments, "--json", file=file, code=code)[0])


@pytest.fixture
def tandem(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Tandem:
    """The command."""
    return Tandem(monkeypatch, capsys)


def test_the_life_of_a_user(tandem: Tandem, tmp_path: Path) -> None:
    file = tmp_path / "access.toml"
    secret, said = tandem.run("add", "alice", "--generate", "--role", "viewer", file=file)
    assert "shown this once" in said
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    alice = parse_access(file.read_text(), "").principals["alice"]
    assert alice.secret is not None
    assert fits(secret.strip(), alice.secret)
    assert secret.strip() not in file.read_text()
    assert "docs/security.md" in file.read_text()
    given = tmp_path / "secret"
    given.write_text("correct horse\n")
    assert tandem.document("add", "bob", "--secret-file", str(given), file=file) == {
        "user": "bob",
        "roles": [],
        "file": str(file),
    }
    users = tandem.document("list", file=file)["users"]
    assert [(one["user"], one["roles"], one["secret"]) for one in users] == [
        ("alice", ["viewer"], True),
        ("bob", [], True),
    ]
    assert "alice" in tandem.run("list", file=file)[0]
    assert tandem.document("roles", "bob", "operator", "viewer", file=file) == {
        "user": "bob",
        "roles": ["operator", "viewer"],
    }
    assert tandem.document("check", "bob", "publish", "orders", file=file)["allowed"]
    bob = parse_access(file.read_text(), "").principals["bob"]
    new = tandem.document("passwd", "bob", "--generate", file=file)["secret"]
    changed = parse_access(file.read_text(), "").principals["bob"]
    assert bob.secret is not None
    assert changed.secret is not None
    assert fits("correct horse", bob.secret)
    assert not fits("correct horse", changed.secret)
    assert fits(new, changed.secret)
    assert tandem.document("remove", "alice", file=file) == {"user": "alice", "file": str(file)}
    assert tandem.document("check", file=file) == {"file": str(file), "users": 1}


def test_check_says_what_a_user_may(tandem: Tandem, tmp_path: Path) -> None:
    file = tmp_path / "access.toml"
    file.write_text(BY_HAND)
    assert (
        tandem.run("check", "alice", "publish", "orders-eu", file=file)[0]
        == "user alice may PUBLISH to topic orders-eu\n"
    )
    refused, _ = tandem.run("check", "alice", "publish", "billing", file=file, code=1)
    assert refused.startswith("user alice may not PUBLISH to topic billing (an administrator can give it")
    told = tandem.document("check", "alice", "group", "g", file=file, code=1)
    assert told == {"user": "alice", "action": "group", "resource": "g", "allowed": False, "reason": told["reason"]}
    assert tandem.document("check", "bob", "view", file=file)["allowed"]
    whole = tandem.document("check", "alice", file=file)
    assert whole == {
        "user": "alice",
        "roles": ["orders"],
        "publish": ["orders*"],
        "subscribe": [],
        "groups": [],
        "allow": [],
    }
    for arguments in (("alice", "fly"), ("alice", "publish"), ("alice", "view", "orders")):
        tandem.run("check", *arguments, file=file, code=2)
    assert "there is no user eve" in tandem.run("check", "eve", file=file, code=1)[1]
    roles = {one["role"]: one for one in tandem.document("roles", file=file)["roles"]}
    assert set(roles) == {"viewer", "operator", "service", "admin", "orders"}
    assert not roles["orders"]["built_in"]


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (("add", "alice", "--generate"), 1, "there is a user alice already"),
        (("add", "a b", "--generate"), 1, "'a b' cannot be a user's name"),
        (("add", "carol", "--generate", "--role", "viewr"), 2, "did you mean viewer?"),
        (("add", "carol"), 1, "give --secret-file FILE, or --generate"),
        (("add", "carol", "--certificate", "bob.example"), 2, "user bob has the same certificate"),
        (("passwd", "eve", "--generate"), 1, "there is no user eve"),
        (("remove", "eve"), 1, "there is no user eve"),
        (("roles", "eve", "viewer"), 1, "there is no user eve"),
        (("roles", "alice", "nothing"), 2, "there is no role nothing"),
    ],
)
def test_what_is_refused_changes_nothing(
    tandem: Tandem, tmp_path: Path, arguments: tuple[str, ...], code: int, words: str
) -> None:
    file = tmp_path / "access.toml"
    file.write_text(BY_HAND)
    assert words in tandem.run(*arguments, file=file, code=code)[1]
    assert file.read_text() == BY_HAND
    assert [path.name for path in tmp_path.iterdir()] == ["access.toml"]


@pytest.mark.parametrize("secret", ["short", "", "tab\tinside it", "x" * 600])
def test_bad_secrets_are_refused(tandem: Tandem, tmp_path: Path, secret: str) -> None:
    (tmp_path / "secret").write_text(secret)
    code = 1 if secret else 2
    given = ("--secret-file", str(tmp_path / "secret"))
    said = tandem.run("add", "a", *given, file=tmp_path / "access.toml", code=code)[1]
    assert "8 to 512 printable characters" in said or "is empty" in said
    assert not (tmp_path / "access.toml").exists()


def test_a_broken_file_is_left_alone(tandem: Tandem, tmp_path: Path) -> None:
    file = tmp_path / "access.toml"
    file.write_text("[users.alice]\nsecrt = 1\n")
    assert "line 2" in tandem.run("add", "bob", "--generate", file=file, code=2)[1]
    assert "did you mean secret?" in tandem.run("check", file=file, code=2)[1]
    assert file.read_text() == "[users.alice]\nsecrt = 1\n"


def test_which_file_must_be_said(tandem: Tandem) -> None:
    assert "TANDEM_ACCESS_FILE" in tandem.run("list", file=None, code=2)[1]


def test_a_person_is_asked_twice_and_sees_nothing_of_it(tmp_path: Path) -> None:
    file = tmp_path / "access.toml"
    command = [sys.executable, "-m", "tandemmq.cli.main", "user", "add", "alice", "--file", str(file)]
    ours, theirs = pty.openpty()
    with subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True) as process:
        os.close(theirs)
        shown = b""
        for question in (b"Secret: ", b"Repeat for confirmation: "):
            while question not in shown:
                shown += os.read(ours, 1000)
            os.write(ours, b"correct horse\n")
        try:
            while part := os.read(ours, 1000):
                shown += part
        except OSError:  # the other side is closed
            pass
        assert process.wait(60) == 0, shown
    os.close(ours)
    assert b"correct" not in shown
    secret = parse_access(file.read_text(), "").principals["alice"].secret
    assert secret is not None
    assert secret.startswith("scrypt:n=16384,r=8,p=5:"), "a secret that a person chose is made slow to guess"
    assert fits("correct horse", secret)


# -- the text ---------------------------------------------------------------------------------------------------------


def test_comments_and_order_stay(tmp_path: Path) -> None:
    document = AccessDocument(tmp_path / "access.toml", BY_HAND)
    document.set_roles("bob", ["viewer", "orders"])
    document.add("carol@shop", HASH, None, ["orders"])
    document.remove("alice")
    text = document.text
    kept = ("# our broker", "# read by the reports", "# what the shop may", "# all of them")
    assert [comment for comment in kept if comment not in text] == []
    assert text.index("[users.bob]") < text.index("# what the shop may\n[roles.orders]") < text.index("carol@shop")
    assert set(document.table.principals) == {"bob", "carol@shop"}
    document.remove("carol@shop")
    document.remove("bob")
    assert "# what the shop may\n[roles.orders]" in document.text
    assert not document.table.principals


@pytest.mark.parametrize(
    "text",
    [
        f'users = {{alice = {{secret = "{HASH}"}}, bob = {{certificate = "b"}}}}\n',
        f'users.alice.secret = "{HASH}"\nusers.bob.certificate = "b"\n',
        f'[users]\nalice = {{secret = "{HASH}"}}\nbob = {{certificate = "b"}}\n',
        f'[ users . "alice" ]\nsecret = "{HASH}"\n[roles.r]\nallow = ["view"]\n[users.bob]\ncertificate = "b"',
    ],
    ids=["one line", "dotted keys", "users in lines", "spaces and other sections"],  # the hash's salt is random
)
def test_other_ways_to_write_it(tmp_path: Path, text: str) -> None:
    document = AccessDocument(tmp_path / "access.toml", text)
    document.set_roles("alice", ["viewer"])
    document.add("carol", HASH, None, ["viewer"])
    document.remove("bob")
    assert {name: one.roles for name, one in document.table.principals.items()} == {
        "alice": ("viewer",),
        "carol": ("viewer",),
    }


def test_mode_and_link_of_an_existing_file_stay(tmp_path: Path) -> None:
    real = tmp_path / "real" / "access.toml"
    real.parent.mkdir()
    real.write_text(BY_HAND)
    real.chmod(0o640)
    link = tmp_path / "access.toml"
    link.symlink_to(real)
    with edited(link) as document:
        document.remove("bob")
    assert link.is_symlink()
    assert stat.S_IMODE(real.stat().st_mode) == 0o640
    assert "bob.example" not in real.read_text()


def test_edits_that_fail_leave_the_file_as_it_was(tmp_path: Path) -> None:
    file = tmp_path / "access.toml"
    file.write_text(BY_HAND)
    with pytest.raises(AccessFileError, match="no role nothing"), edited(file) as document:
        document.set_roles("alice", ["nothing"])
    with pytest.raises(NotThere), edited(file) as document:
        document.remove("eve")
    with pytest.raises(CommandFailed, match="No such file"), edited(tmp_path / "none" / "access.toml"):
        pass
    assert file.read_text() == BY_HAND


def test_edits_at_once_are_all_there(tmp_path: Path) -> None:
    file = tmp_path / "access.toml"
    file.write_text(BY_HAND)
    program = (
        "import sys, pathlib; from tandemmq.cli.access.access_document import edited\n"
        f"for n in range(10):\n    with edited(pathlib.Path({str(file)!r})) as d:\n"
        f"        d.add(f'{{sys.argv[1]}}{{n}}', {HASH!r}, None, ['viewer'])\n"
    )
    workers = [subprocess.Popen([sys.executable, "-c", program, name]) for name in ("x", "y", "z")]
    assert [worker.wait(60) for worker in workers] == [0, 0, 0]
    assert len(parse_access(file.read_text(), "").principals) == 32
