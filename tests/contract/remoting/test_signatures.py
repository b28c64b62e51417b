"""Who may do what: access keys and signatures of classic clients, against the access file."""

import base64
from collections.abc import Iterator
from pathlib import Path

import pytest

from tandemmq.common.wire.remoting.codes import RequestCode, ResponseCode
from tandemmq.common.wire.remoting.command import Command
from tandemmq.common.wire.remoting.versions import V4_9_3
from tandemmq.store.fronts.remoting.identity import signature
from tests.access_users import access_text
from tests.contract.remoting.classic_client import ClassicClient, Sign, records
from tests.contract.remoting.conftest import classic, port_of
from tests.contract.store_process import StoreProcess
from tests.golden import captured_frames

SECRET = "sk12345678"


def signing(user: str, secret: str = SECRET) -> Sign:
    """What signs requests."""

    def sign(command: Command) -> None:
        fields = {**(command.fields or {}), "AccessKey": user}
        made = signature(secret, fields, command.body)
        command.fields = fields | {"Signature": base64.b64encode(made).decode()}

    return sign


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    """The port of a store with two users: one who sends orders, one who consumes them."""
    directory: Path = tmp_path_factory.mktemp("signatures")
    access = directory / "access.toml"
    roles = '[roles.sends]\npublish = ["orders"]\n[roles.reads]\nsubscribe = ["orders"]\ngroups = ["billing"]\n'
    access.write_text(access_text(seller=["sends"], biller=["reads"]) + roles)
    secrets = directory / "access.signing.toml"
    secrets.touch(mode=0o600)
    secrets.write_text(f'[secrets]\nseller = "{SECRET}"\nbiller = "{SECRET}"\n')
    with classic(directory / "store", access_file=access) as store:
        assert isinstance(store, StoreProcess)
        yield port_of(store)


def test_users_may_do_what_their_roles_say(secured: int) -> None:
    seller, biller = (ClassicClient(secured, one, sign=signing(one)) for one in ("seller", "biller"))
    with seller, biller:
        assert seller.send("orders", b"one").code == 0
        for refused in (
            seller.send("others"),
            seller.pull("billing", "orders", 0),
            biller.send("orders"),
            biller.pull("others", "orders", 0),
            biller.call(RequestCode.GET_CONSUMER_LIST_BY_GROUP, {"consumerGroup": "others"}),
            biller.call(RequestCode.GET_CONSUMER_RUNNING_INFO, {"consumerGroup": "billing", "clientId": "x"}),
        ):
            assert refused.code == ResponseCode.NO_PERMISSION, refused.remark
            assert "may not" in refused.remark
        biller.heartbeat(consumes={"billing": {"orders": "*"}})
        assert [one.body for one in records(biller.pull("billing", "orders", 0))] == [b"one"]
        assert biller.commit("billing", "orders", 1).code == 0


def test_nobody_is_let_in_without_a_right_signature(secured: int) -> None:
    for sign, said in (
        (None, "accessKey"),
        (signing("seller", "wrong"), "Check signature failed for accessKey=seller"),
        (signing("stranger"), "Check signature failed for accessKey=stranger"),
    ):
        with ClassicClient(secured, sign=sign) as client:
            answer = client.send("orders")
            assert answer.code == ResponseCode.NO_PERMISSION
            assert said in answer.remark


@pytest.mark.golden
@pytest.mark.parametrize("version", ["4.9.7", "5.3.2"])
def test_captured_signatures_are_ours(version: str) -> None:
    signed = 0
    for line in captured_frames(version, "produce_signed"):
        fields = line.get("extFields") or {}
        if "Signature" in fields and line["direction"] == "to_server" and line["body"] is not None:
            body = base64.b64decode(line["body"])
            left_out = ("_UNIQUE_KEY_QUERY",) if line["version"] <= V4_9_3 else ()
            made = base64.b64encode(signature(SECRET, fields, body, left_out)).decode()
            assert made == fields["Signature"]
            signed += 1
    assert signed > 10
