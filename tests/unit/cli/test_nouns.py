"""What the nouns make of words on the command line, and of answers."""

import json
from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any

import grpc
import pytest
import typer

from tandemmq.admin.v1 import admin_pb2
from tandemmq.cli.nouns import message as message_noun
from tandemmq.cli.nouns.calls import comma, document, enum_name
from tandemmq.cli.nouns.group import _reset_request
from tandemmq.cli.nouns.message import _say_by
from tandemmq.cli.nouns.topic import _permission, _row, show_permission
from tandemmq.cli.talk.failures import NotThere
from tandemmq.cli.talk.moments import BadMoment
from tandemmq.metadata.v1 import metadata_pb2
from tandemmq.store.v1 import message_pb2


def test_an_answer_as_json_has_every_field_and_plain_numbers() -> None:
    message = message_pb2.StoredMessage(topic="t", queue_offset=1 << 40, properties={"b": "2", "a": "1"}, body=b"x")
    told = document(admin_pb2.FoundMessage(broker="b", message=message, body_bytes=1))
    assert told["consumed_by"] == []
    assert told["message"]["queue_offset"] == 1 << 40
    assert told["message"]["queue_id"] == 0
    assert list(told["message"]["properties"]) == ["a", "b"]
    assert told["message"]["body"] == "x"
    assert json.loads(json.dumps(told)) == told


def test_bytes_that_are_no_text_have_another_name() -> None:
    told = document(message_pb2.StoredMessage(body=b"\xff\x00"))
    assert told["body_base64"] == "/wA="
    assert "body" not in told


def test_what_is_not_set_is_left_out_and_what_is_set_to_nothing_is_not() -> None:
    told = document(admin_pb2.OffsetMove(before=0, after=3))
    assert told["before"] == 0
    assert "before" not in document(admin_pb2.OffsetMove(after=3))
    assert document(metadata_pb2.TopicConfig(name="t")).keys() >= {"name", "order", "attributes"}


def test_enum_values_have_names_and_unknown_ones_stay_numbers() -> None:
    assert document(admin_pb2.Topic(kind=admin_pb2.DEAD_LETTER))["kind"] == "DEAD_LETTER"
    assert enum_name(admin_pb2.Topic(kind=admin_pb2.DEAD_LETTER), "kind") == "dead letter"
    assert document(admin_pb2.Topic.FromString(b"\x18\x63"))["kind"] == 99


@pytest.mark.parametrize(
    ("to", "field", "value"),
    [
        ("earliest", "earliest", True),
        ("latest", "latest", True),
        ("=0", "offset", 0),
        ("=117", "offset", 117),
        ("-5", "shift", -5),
        ("+5", "shift", 5),
        ("1700000000000", "timestamp_ms", 1_700_000_000_000),
        ("2026-01-31T12:00+00:00", "timestamp_ms", 1_769_860_800_000),
    ],
)
def test_where_a_group_goes_is_read(to: str, field: str, value: Any) -> None:
    request = _reset_request("g", "t", to, [1], "b")
    assert request.WhichOneof("to") == field
    assert getattr(request, field) == value
    assert (request.group, request.topic, list(request.queue_ids), request.broker) == ("g", "t", [1], "b")


@pytest.mark.parametrize("to", ["", "soon", "=", "=x", "+", "--5", "earliest "])
def test_what_is_no_place_is_told(to: str) -> None:
    with pytest.raises(BadMoment):
        _reset_request("g", "t", to, [], "")


@pytest.mark.parametrize(("files", "queues"), [(0, 8), (5, 8), (12, 12)])
def test_a_topic_has_the_queues_that_it_was_made_with_or_that_are_left(files: int, queues: int) -> None:
    config = metadata_pb2.TopicConfig(name="bills", read_queues=4, write_queues=8)
    assert _row(admin_pb2.Topic(broker="b", config=config, queues=files))[-2] == queues


@pytest.mark.parametrize(("text", "perm"), [("rw", 6), ("wr", 6), ("r", 4), ("w", 2), ("-", 0), ("RW", 6)])
def test_permissions_are_letters(text: str, perm: int) -> None:
    assert _permission(text) == perm
    assert _permission(show_permission(perm)) == perm


@pytest.mark.parametrize("text", ["x", "rr", "rwx", "6"])
def test_other_letters_are_refused(text: str) -> None:
    with pytest.raises(typer.BadParameter):
        _permission(text)


def find(topic: str = "t", **by: str) -> admin_pb2.FindMessagesRequest:
    request = admin_pb2.FindMessagesRequest(topic=topic)
    ways: dict[str, str | None] = dict.fromkeys(("message_id", "key", "unique_key", "place", "begin", "end"))
    _say_by(request, *{**ways, **by}.values())
    return request


@pytest.mark.parametrize(
    ("by", "way"),
    [
        ({"message_id": "AB"}, "message_id"),
        ({"key": "k"}, "key"),
        ({"unique_key": "u"}, "unique_key"),
        ({"place": "2:117"}, "place"),
        ({"begin": "1000"}, "time"),
        ({"end": "1000"}, "time"),
    ],
)
def test_how_to_look_is_read(by: dict[str, str], way: str) -> None:
    assert find(**by).WhichOneof("by") == way


def test_a_key_can_be_bounded_in_time() -> None:
    request = find(key="k", begin="5", end="9")
    assert (request.key, request.begin_ms, request.end_ms) == ("k", 5, 9)


@pytest.mark.parametrize(
    "by",
    [{}, {"key": "k", "unique_key": "u"}, {"place": "2"}, {"place": "x:1"}, {"topic": "", "key": "k"}],
)
def test_what_says_nothing_or_too_much_is_refused(by: dict[str, str]) -> None:
    with pytest.raises(typer.BadParameter):
        find(**by)


def test_long_lists_of_names_are_cut() -> None:
    assert comma(["a", "b"]) == "a, b"
    assert comma(list("abcde")) == "a, b, c and 2 more"


def test_a_search_that_has_not_come_to_its_end_does_not_say_that_there_is_nothing(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    answer = admin_pb2.FindMessagesResponse(more=True, read_to_ms=1_700_000_000_000, looked_at=5_000)
    admin = SimpleNamespace(FindMessages=lambda _request: answer, GetTopic=lambda _request: None)
    monkeypatch.setattr(message_noun, "admin_at", lambda _address: nullcontext(admin))
    with pytest.raises(NotThere, match="none of the messages that were read"):
        message_noun.find("orders", begin="1", where="body.id = 17")
    assert "There may be more: --begin" in capsys.readouterr().err
    answer.Clear()
    with pytest.raises(NotThere, match="there is no such message"):
        message_noun.find("orders", begin="1", where="body.id = 17")


class Refused(grpc.RpcError):
    def __init__(self, status: grpc.StatusCode) -> None:
        super().__init__()
        self.status = status

    def code(self) -> grpc.StatusCode:
        return self.status


def test_who_may_read_a_topic_and_not_look_at_it_hears_that_there_is_no_such_message(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def get_topic(_request: object) -> None:
        raise refusal

    admin = SimpleNamespace(FindMessages=lambda _request: admin_pb2.FindMessagesResponse(), GetTopic=get_topic)
    monkeypatch.setattr(message_noun, "admin_at", lambda _address: nullcontext(admin))
    refusal = Refused(grpc.StatusCode.PERMISSION_DENIED)
    with pytest.raises(NotThere, match="there is no such message"):
        message_noun.find("orders", key="k")
    refusal = Refused(grpc.StatusCode.NOT_FOUND)
    with pytest.raises(Refused):
        message_noun.find("orders", key="k")
