"""The log of actions: what changes something is written down before it is done, or not done."""

import json
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import grpc
import pytest

from tandemmq.admin.v1 import admin_pb2 as pb
from tandemmq.admin.v1.admin_pb2_grpc import AdminStub
from tandemmq.common.access.scrypt import GENERATED, hash_secret
from tandemmq.common.identity.credentials import authorization
from tests.admin_process import AdminProcess
from tests.faults.pair import Node
from tests.faults.pair_process import until

DEADLINE = 60
BODY = b"nobody may see this body"
VALUE = "nor this property"


def actions(admin: AdminProcess, limit: int = 0) -> list[pb.Action]:
    return list(admin.stub.ListActions(pb.ListActionsRequest(limit=limit), timeout=DEADLINE).actions)


def put(admin: AdminProcess, name: str) -> None:
    admin.put_topics([name])


def test_everything_that_changes_something_is_in_it(admin: AdminProcess) -> None:
    stub = admin.stub
    begun = time.time_ns() // 1_000_000
    put(admin, "a-topic")
    group = pb.PutGroupRequest()
    group.config.name = "a-group"
    stub.PutGroup(group, timeout=DEADLINE)
    stub.SendMessage(
        pb.SendMessageRequest(topic="a-topic", body=BODY, tag="t", keys=["k"], properties={"p": VALUE}),
        timeout=DEADLINE,
    )
    reset = pb.ResetOffsetsRequest(group="a-group", topic="a-topic", latest=True)
    stub.ResetOffsets(reset, timeout=DEADLINE)
    stub.DeleteGroup(pb.DeleteGroupRequest(group="a-group"), timeout=DEADLINE)
    stub.DeleteTopic(pb.DeleteTopicRequest(topic="a-topic"), timeout=DEADLINE)
    for _ in stub.GetSupportBundle(pb.GetSupportBundleRequest(), timeout=DEADLINE):
        pass
    last = actions(admin)[:7]
    assert [one.method for one in reversed(last)] == [
        "PutTopic", "PutGroup", "SendMessage", "ResetOffsets", "DeleteGroup", "DeleteTopic", "GetSupportBundle",
    ]  # fmt: skip
    assert {one.outcome for one in last} == {"OK"}
    assert all(begun <= one.at_ms <= time.time_ns() // 1_000_000 for one in last)
    assert all(one.peer.startswith("ipv4:127.0.0.1:") for one in last)
    assert {one.user for one in last} == {""}
    assert json.loads(last[4].request_json) == {
        "topic": "a-topic", "tag": "t", "keys": ["k"], "body_bytes": len(BODY), "properties": ["p"],
    }  # fmt: skip
    assert json.loads(last[3].request_json) == {"group": "a-group", "topic": "a-topic", "latest": True}
    written = (admin.directory / "actions.log").read_bytes()
    assert BODY not in written
    assert VALUE.encode() not in written
    lines = [json.loads(line) for line in written.splitlines()]
    assert [one["outcome"] for one in lines if one["id"] == lines[-1]["id"]] == ["", "OK"]


def test_what_changes_nothing_is_not_in_it(admin: AdminProcess) -> None:
    put(admin, "a-quiet")
    before = len(actions(admin, 1000))
    stub = admin.stub
    stub.GetCluster(pb.GetClusterRequest(), timeout=DEADLINE)
    stub.ListTopics(pb.ListTopicsRequest(), timeout=DEADLINE)
    stub.WhoAmI(pb.WhoAmIRequest(), timeout=DEADLINE)
    with pytest.raises(grpc.RpcError):
        stub.ResendMessages(pb.ResendMessagesRequest(group="a-none", dry_run=True), timeout=DEADLINE)
    assert len(actions(admin, 1000)) == before


def test_failures_are_in_it_with_code_and_words(admin: AdminProcess) -> None:
    with pytest.raises(grpc.RpcError):
        admin.stub.SendMessage(pb.SendMessageRequest(topic="a-no", queue_id=99, body=BODY), timeout=DEADLINE)
    (action,) = actions(admin, 1)
    assert (action.method, action.outcome) == ("SendMessage", "OUT_OF_RANGE")
    assert "99" in action.problem
    with pytest.raises(grpc.RpcError):
        admin.stub.CancelJob(pb.GetJobRequest(id="nothing"), timeout=DEADLINE)
    assert [(one.method, one.outcome) for one in actions(admin, 2)] == [
        ("CancelJob", "NOT_FOUND"),
        ("SendMessage", "OUT_OF_RANGE"),
    ]


def test_a_bundle_that_nobody_waits_for_is_told_as_such(admin: AdminProcess) -> None:
    call = admin.stub.GetSupportBundle(pb.GetSupportBundleRequest())
    next(call)
    call.cancel()
    until(lambda: actions(admin, 1)[0].outcome in ("CANCELLED", "OK"), DEADLINE, "its end")
    assert actions(admin, 1)[0].method == "GetSupportBundle"


def test_limits(admin: AdminProcess) -> None:
    for limit in (-1, 1001):
        with pytest.raises(grpc.RpcError) as raised:
            actions(admin, limit)
        assert raised.value.code() == grpc.StatusCode.INVALID_ARGUMENT


# -- disks that refuse -------------------------------------------------------------------------------------------------


def refused(admin: AdminProcess, topic: str) -> str:
    with pytest.raises(grpc.RpcError) as raised:
        put(admin, topic)
    assert raised.value.code() == grpc.StatusCode.FAILED_PRECONDITION
    found = admin.stub.ListTopics(pb.ListTopicsRequest(match=topic), timeout=DEADLINE)
    assert not found.topics, "it was not done"
    return str(raised.value.details())


def test_what_cannot_be_written_down_is_not_done(node: Node, tmp_path: Path) -> None:
    directory = tmp_path / "own"
    directory.mkdir()
    (directory / "actions.log").mkdir()  # root may write everywhere: a directory in the way is no matter of rights
    with AdminProcess(directory, {"one": node}) as admin:
        said = refused(admin, "a-refused")
        assert "PutTopic was not done" in said
        assert str(directory / "actions.log") in said
        assert admin.stub.GetCluster(pb.GetClusterRequest(), timeout=DEADLINE).nodes, "looking needs no log"
        (directory / "actions.log").rmdir()
        put(admin, "a-refused")
        assert [one.outcome for one in actions(admin)] == ["OK"]


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 256 KiB."""
    place = tmp_path / "disk"
    place.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", str(place)]
    if shutil.which("mount") is None or subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("no file system can be mounted here")
    try:
        yield place
    finally:
        subprocess.run(["umount", "-l", str(place)], check=False)


@pytest.mark.slow
def test_a_full_disk(node: Node, small_disk: Path) -> None:
    with AdminProcess(small_disk / "own", {"one": node}) as admin:
        put(admin, "a-before")
        (small_disk / "filler").write_bytes(b"x" * (200 << 10))
        try:
            with (small_disk / "filler").open("ab", buffering=0) as filler:
                while True:
                    filler.write(b"x" * 4096)
        except OSError:
            pass
        with (small_disk / "own" / "actions.log").open("ab") as log:  # what is left of its last page
            while log.tell() % 4096:
                log.write(b"\n")
        assert "No space left" in refused(admin, "a-disk")
        (small_disk / "filler").unlink()
        put(admin, "a-disk")
        assert [one.outcome for one in actions(admin)] == ["OK", "OK"]


@pytest.mark.slow
def test_what_ran_when_admin_was_killed_has_no_outcome(node: Node, tmp_path: Path) -> None:
    with AdminProcess(tmp_path / "own", {"one": node}) as admin:
        put(admin, "a-killed")
    lines = (tmp_path / "own" / "actions.log").read_bytes().splitlines(keepends=True)
    (tmp_path / "own" / "actions.log").write_bytes(b"".join(lines[:1]) + lines[1][:20])
    with AdminProcess(tmp_path / "own", {"one": node}) as admin:
        (action,) = actions(admin)
        assert (action.method, action.outcome) == ("PutTopic", "")
        put(admin, "a-killed")
        assert [one.outcome for one in actions(admin)] == ["OK", ""], "half a line harms no other"


# -- who ---------------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_who_it_was_and_who_was_turned_away(node: Node, tmp_path: Path) -> None:
    access = tmp_path / "access.toml"
    hashed = {name: hash_secret(f"{name}-secret", GENERATED) for name in ("ann", "bob")}
    access.write_text(
        f'[users.ann]\nsecret = "{hashed["ann"]}"\nroles = ["operator"]\n'
        f'[users.bob]\nsecret = "{hashed["bob"]}"\nroles = ["viewer"]\n'
    )
    with AdminProcess(tmp_path / "own", {"one": node}, access_file=access) as admin:
        ann = (authorization("ann", "ann-secret"),)
        bob = (authorization("bob", "bob-secret"),)
        request = pb.SendMessageRequest(topic="a-who", body=BODY)
        stub: AdminStub = admin.stub
        stub.SendMessage(request, timeout=DEADLINE, metadata=ann)
        for metadata, code in (
            (bob, grpc.StatusCode.PERMISSION_DENIED),
            ((authorization("bob", "wrong"),), grpc.StatusCode.UNAUTHENTICATED),
            ((), grpc.StatusCode.UNAUTHENTICATED),
        ):
            with pytest.raises(grpc.RpcError) as raised:
                stub.SendMessage(request, timeout=DEADLINE, metadata=metadata)
            assert raised.value.code() == code

        def listed() -> list[pb.Action]:
            return list(stub.ListActions(pb.ListActionsRequest(), timeout=DEADLINE, metadata=ann).actions)

        until(lambda: len(listed()) >= 4, DEADLINE, "all of them are written down")
        assert [(one.user, one.method, one.outcome) for one in reversed(listed())] == [
            ("ann", "SendMessage", "OK"),
            ("bob", "SendMessage", "PERMISSION_DENIED"),
            ("bob", "SendMessage", "UNAUTHENTICATED"),
            ("", "SendMessage", "UNAUTHENTICATED"),
        ]
        written = b"".join(path.read_bytes() for path in (tmp_path / "own").glob("*.log"))
        assert b"ann-secret" not in written
        assert BODY not in written

        who = stub.WhoAmI(pb.WhoAmIRequest(), timeout=DEADLINE, metadata=bob)
        assert (who.user, list(who.roles), who.open) == ("bob", ["viewer"], False)
        assert "ListTopics" in who.methods
        assert "PutTopic" not in who.methods
    with AdminProcess(tmp_path / "own-open", {"one": node}) as admin:
        who = admin.stub.WhoAmI(pb.WhoAmIRequest(), timeout=DEADLINE)
        assert (who.user, who.open) == ("", True)
        assert {"PutTopic", "WhoAmI"} <= set(who.methods)


def test_a_line_that_has_rotted_is_left_out_and_told(node: Node, tmp_path: Path) -> None:
    log = tmp_path / "own" / "actions.log"
    with AdminProcess(tmp_path / "own", {"one": node}) as admin:
        put(admin, "a-rotten")
        put(admin, "a-sound")
        whole = log.read_bytes()
        log.write_bytes(whole.replace(b"a-rotten", b"a-r0tten"))
        (action,) = actions(admin)
        assert "a-sound" in action.request_json
        assert len(actions(admin)) == 1
        told = [one["path"] for one in admin.events() if one["event"] == "action not readable"]
        assert told == [str(log)] * 2, "both lines of it, once each"


@pytest.mark.slow
def test_lines_of_before_there_was_a_checksum_are_read(node: Node, tmp_path: Path) -> None:
    log = tmp_path / "own" / "actions.log"
    with AdminProcess(tmp_path / "own", {"one": node}) as admin:
        put(admin, "a-older")
        lines = [json.loads(line) for line in log.read_text().splitlines()]
        for line in lines:
            del line["crc32"]
        log.write_text("".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines))
        put(admin, "a-newer")
        newer, older = actions(admin)
        assert ("a-newer" in newer.request_json, "a-older" in older.request_json) == (True, True)
        assert (newer.outcome, older.outcome) == ("OK", "OK")
        assert not [one for one in admin.events() if one["event"] == "action not readable"]
