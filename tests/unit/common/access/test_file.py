"""access.toml: what it may say, and errors that name line, key and remedy."""

from pathlib import Path

import pytest

from tandemmq.common.access.errors import AccessFileError
from tandemmq.common.access.file import parse_access, read_text
from tandemmq.common.access.needs import Action, Need, group, publish, subscribe
from tandemmq.common.access.scrypt import GENERATED, hash_secret

HASH = "scrypt:n=1024,r=8,p=1:+5dvSRMoWmry2am+iu26eA==:xseE0zNbadmwOiJ9xoTtkINosiiIsRHw25Hqs50W5Ko="
"""Of `secret`; always the same, since names of tests are made of it."""

GOOD = f"""\
# people
[users.alice]
secret = "{HASH}"
roles = ["orders", "viewer"]

[users."reports@shop"]
certificate = "reports.example"
roles = ["service"]

[users.nobody]
secret = "{HASH}"

[roles.orders]
publish = ["orders", "orders-*"]
subscribe = ["orders*"]
groups = ["orders-*"]
allow = ["manage"]
"""


def test_a_whole_file() -> None:
    table = parse_access(GOOD, "access.toml")
    assert set(table.principals) == {"alice", "reports@shop", "nobody"}
    alice = table.principals["alice"]
    assert alice.roles == ("orders", "viewer")
    for need in (
        publish("orders-eu"),
        subscribe("orders"),
        group("orders-app"),
        Need(Action.MANAGE),
        Need(Action.VIEW),
    ):
        assert alice.may(need)
    assert not alice.may(publish("ordersx"))
    assert table.by_certificate["reports.example"].name == "reports@shop"
    assert table.principals["nobody"].roles == ()


def test_an_empty_file_lets_nobody_in() -> None:
    table = parse_access("", "access.toml")
    assert not table.principals
    assert table.stand_in(7) is None


def test_a_name_always_gets_the_same_stand_in() -> None:
    text = "".join(f'[users.u{n}]\nsecret = "{hash_secret("x", GENERATED)}"\n' for n in range(5))
    table = parse_access(text, "access.toml")
    assert table.stand_in(12) == table.stand_in(12)
    assert len({table.stand_in(n) for n in range(5)}) == 5


ROLE = "[roles.orders]\n"
USER = f'[users.alice]\nsecret = "{HASH}"\n'


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[users.alice\n", ["access.toml", "line 1", "TOML"]),
        ("user = 1\n", ["access.toml line 1: user: nothing is called so here (did you mean users?)"]),
        ("users = 1\n", ["access.toml line 1: users: users is no table", "[users.NAME]"]),
        ("[users]\nalice = 1\n", ["users.alice", "it is no table (write [users.alice] above its keys)"]),
        ('[users."a b"]\n', ["line 1", "'a b' cannot be a name", "allowed are"]),
        (
            "[users.alice]\n",
            ["line 1: users.alice: there is neither secret nor certificate", "tandem user passwd alice"],
        ),
        ('\n[users.alice]\nsecret = "hello"\n', ["line 3: users.alice.secret: it is no hash", "tandem user add"]),
        ("[users.alice]\nsecret = 1\n", ["line 2", "users.alice.secret: it is no text"]),
        (USER + "role = []\n", ["line 3: users.alice.role: nothing is called so here (did you mean roles?)"]),
        (USER + 'roles = ["viewr"]\n', ["line 3: users.alice.roles: there is no role viewr (did you mean viewer?)"]),
        (USER + 'roles = "viewer"\n', ["line 3", 'no list of texts (write roles = ["…", "…"])']),
        (USER + 'certificate = ""\n', ["line 3: users.alice.certificate: it is empty"]),
        ("[roles.admin]\n", ["line 1: roles.admin: the role admin is built in (call yours otherwise)"]),
        (ROLE + 'publsh = ["x"]\n', ["line 2: roles.orders.publsh: nothing is called so here (did you mean publish?)"]),
        (ROLE + 'publish = ["a.b"]\n', ["line 2: roles.orders.publish: 'a.b' is no pattern", "* stands for"]),
        (ROLE + 'allow = ["operat"]\n', ["line 2: roles.orders.allow", "did you mean operate?"]),
        (ROLE + 'allow = ["publish"]\n', ["'publish' is nothing to allow", "internal, manage, operate, view"]),
        (
            '[users.a]\ncertificate = "c"\n[users.b]\ncertificate = "c"\n',
            ["line 4: users.b.certificate: user a has the same certificate"],
        ),
    ],
)
def test_what_it_may_not_say(text: str, words: list[str]) -> None:
    with pytest.raises(AccessFileError) as error:
        parse_access(text, "access.toml")
    for word in words:
        assert word in error.value.explain()
    assert error.value.remedy


def test_a_file_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(AccessFileError, match=r"none\.toml: No such file") as error:
        read_text(tmp_path / "none.toml")
    assert error.value.remedy
    (tmp_path / "binary").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(AccessFileError, match="not UTF-8"):
        read_text(tmp_path / "binary")
