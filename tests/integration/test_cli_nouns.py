"""The commands that ask the admin service, against a real cluster."""

import json
import signal
import subprocess
import sys
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import grpc
import pytest
from typer.testing import CliRunner

from tandemmq.cli.main import app
from tandemmq.cli.messaging import bench, top
from tandemmq.cli.talk.failures import CallFailed, CommandFailed, NotThere
from tandemmq.delivery.v1 import delivery_pb2
from tandemmq.delivery.v1.delivery_pb2_grpc import DeliveryStub
from tests.admin_process import AdminProcess, lone_node, running
from tests.faults.pair import Node
from tests.metasync_process import wait_until

pytestmark = [pytest.mark.xdist_group("cli nouns"), pytest.mark.timeout(300)]


class Ran(NamedTuple):
    """How a command ended."""

    code: int
    out: str

    @property
    def document(self) -> Any:
        return json.loads(self.out)


class Beside(NamedTuple):
    """A broker with messages, and an admin beside it."""

    node: Node
    admin: AdminProcess
    files: Path


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Beside]:
    directory = tmp_path_factory.mktemp("nouns")
    node = lone_node(directory / "alpha", "alpha")
    with running(node), AdminProcess(directory / "admin", {"one": node}, files=True) as admin:
        with node.client() as client:
            for number in range(20):
                client.send("orders", b"body %d" % number, tag="even" if number % 2 == 0 else "", keys=[f"k{number}"])
        yield Beside(node, admin, directory)


@pytest.fixture
def tandem(cluster: Beside, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Ran]:
    monkeypatch.setenv("TANDEM_ADMIN_ADDRESS", cluster.admin.address)
    monkeypatch.setenv("TANDEM_ADDRESS", cluster.node.address("store"))

    def run(*arguments: str) -> Ran:
        done = CliRunner().invoke(app, arguments)
        if done.exception is not None and not isinstance(done.exception, SystemExit):
            raise done.exception
        return Ran(done.exit_code, done.stdout)

    return run


Tandem = Callable[..., Ran]


def test_a_cluster_is_shown(tandem: Tandem) -> None:
    def node() -> Any:
        (found,) = tandem("cluster", "show", "--json").document["nodes"]
        return found

    wait_until(lambda: all(one["serving"] for one in node()["services"]), "all services serve")
    assert (node()["name"], node()["broker_name"], node()["role"]) == ("one", "alpha", "MASTER")
    words = tandem("cluster", "show").out
    assert "alpha" in words
    assert "all well" in words


def test_services_are_listed(tandem: Tandem) -> None:
    services = tandem("node", "list", "--json").document["services"]
    assert {one["service"] for one in services} == {"store", "replicator", "metasync"}
    words = tandem("node", "list").out
    assert words.count("serving") == 3


def test_settings_are_shown_with_their_origin(tandem: Tandem) -> None:
    words = tandem("node", "config", "one", "store").out
    assert "grpcPort" in words
    assert "cleanResourceInterval" not in words
    assert "cleanResourceInterval" in tandem("node", "config", "one", "store", "--all").out
    (store,) = tandem("node", "config", "one", "store", "--json").document["services"]
    assert len(store["settings"]) > 50


def test_a_topic_lives(tandem: Tandem) -> None:
    assert tandem("topic", "create", "bills", "-r", "3", "-w", "3").code == 0
    (made,) = tandem("topic", "list", "bills", "--json").document["topics"]
    assert (made["config"]["read_queues"], made["config"]["perm"], made["kind"]) == (3, 6, "NORMAL")
    assert tandem("topic", "update", "bills", "--perm", "r").code == 0
    (changed,) = tandem("topic", "show", "bills", "--json").document["topics"]
    assert (changed["config"]["read_queues"], changed["config"]["perm"]) == (3, 4)
    assert "bills on alpha: normal, r, 3 queues" in tandem("topic", "show", "bills").out
    assert tandem("topic", "delete", "bills", "--yes").code == 0
    assert tandem("topic", "list", "bills", "--json").document == {"topics": [], "total": 0}


def test_a_topic_and_a_group_are_made_in_one_call_each(tandem: Tandem) -> None:
    assert tandem("topic", "create", "steps", "--queues", "8", "--type", "fifo").code == 0
    (made,) = tandem("topic", "list", "steps", "--json").document["topics"]
    assert (made["config"]["read_queues"], made["config"]["write_queues"]) == (8, 8)
    assert made["config"]["attributes"] == {"message.type": "FIFO"}
    sent = {tandem("message", "send", "steps", "x", "--json").document["receipt"]["queue_id"] for _ in range(3)}
    assert sent <= set(range(8))
    assert tandem("topic", "create", "other", "--type", "odd").code == 2
    assert tandem("group", "create", "climbers", "--fifo", "--retries", "2").code == 0
    (group,) = tandem("group", "list", "climbers", "--json").document["groups"]
    assert (group["config"]["consume_message_orderly"], group["config"]["retry_max_times"]) == (True, 2)
    assert tandem("group", "update", "climbers", "--no-fifo").code == 0
    (group,) = tandem("group", "list", "climbers", "--json").document["groups"]
    assert (group["config"]["consume_message_orderly"], group["config"]["retry_max_times"]) == (False, 2)


def test_all_settings_of_a_group_have_an_option(tandem: Tandem) -> None:
    def config() -> Any:
        (group,) = tandem("group", "show", "careful", "--json").document["groups"]
        return group["config"]

    options = ("--consume-from", "first", "--ack-durability", "disk", "--keep-unconsumed", "--timeout", "3")
    assert tandem("group", "create", "careful", *options).code == 0
    assert config()["consume_timeout_minutes"] == 3
    assert config()["attributes"] == {
        "consumeFromWhere": "CONSUME_FROM_FIRST_OFFSET", "ackDurability": "DISK", "keepUnconsumed": "true",
    }  # fmt: skip
    said = tandem("group", "show", "careful").out
    for words in ("begins at", "first", "ack durability", "keeps unconsumed"):
        assert words in said
    assert tandem("group", "update", "careful", "--ack-durability", "default", "--no-keep-unconsumed").code == 0
    assert config()["attributes"] == {"consumeFromWhere": "CONSUME_FROM_FIRST_OFFSET"}
    assert tandem("group", "update", "careful", "--ack-durability", "soon").code == 2
    assert tandem("group", "update", "careful", "--retry-policy", "10s,1m").code == 0
    policy = {"type": "CUSTOMIZED", "customizedRetryPolicy": {"next": [10_000, 60_000]}}
    assert json.loads(config()["other_json"])["groupRetryPolicy"] == policy
    assert "10s,1m" in tandem("group", "show", "careful").out
    assert tandem("group", "update", "careful", "--timeout", "4").code == 0
    assert json.loads(config()["other_json"])["groupRetryPolicy"] == policy
    assert tandem("group", "update", "careful").code == 2
    assert tandem("group", "update", "careful", "--retries", "5").code == 0
    assert config()["consume_timeout_minutes"] == 4, "what is not given stays as it is"
    assert tandem("group", "create", "plain").code == 0
    assert "timeout       15 minutes" in tandem("group", "show", "plain").out


def test_a_topic_keeps_its_messages_for_so_many_hours(tandem: Tandem) -> None:
    def attributes() -> Any:
        (topic,) = tandem("topic", "show", "ticks", "--json").document["topics"]
        return topic["config"].get("attributes", {})

    assert "messages kept for 6 h" in tandem("topic", "create", "ticks", "--type", "fifo", "--retention", "6").out
    assert attributes() == {"message.type": "FIFO", "reserve.time": "6"}
    assert "written, messages kept for 6 h, message.type=FIFO" in tandem("topic", "show", "ticks").out
    assert tandem("topic", "update", "ticks", "--retention", "48").code == 0
    assert attributes() == {"message.type": "FIFO", "reserve.time": "48"}
    assert "kept" not in tandem("topic", "update", "ticks", "--retention", "0").out
    assert attributes() == {"message.type": "FIFO"}
    assert tandem("topic", "create", "ever", "--retention", "0").code == 0
    assert tandem("topic", "update", "ticks", "--retention", "-1").code == 2


def test_a_topic_has_its_messages_counted(tandem: Tandem) -> None:
    found = tandem("topic", "show", "orders", "--json").document
    assert sum(one["max_offset"] for one in found["queues"]) == 20


def test_messages_are_filtered(tandem: Tandem) -> None:
    assert tandem("topic", "create", "sieve", "--queues", "2").code == 0
    for number in range(3):
        assert tandem("message", "send", "sieve", f'{{"order": {number}}}').code == 0
    looked = ("message", "find", "sieve", "--newest-first", "--json")
    found = tandem(*looked).document["messages"]
    assert len(found) == 3
    times = [int(one["message"]["store_timestamp"]) for one in found]
    assert times == sorted(times, reverse=True)
    document = tandem(*looked, "--where", "body.order > 1", "--containing", "ORDER").document
    assert (len(document["messages"]), document["looked_at"]) == (1, 3)
    with pytest.raises(NotThere):
        tandem(*looked, "--where", "body.order > 2")
    assert tandem("message", "find", "sieve").code == 2, "it must be said how"


def test_a_list_has_the_messages_of_a_second_ago(tandem: Tandem) -> None:
    def listed() -> int:
        (topic,) = tandem("topic", "list", "orders", "--json").document["topics"]
        return int(topic["messages"])

    wait_until(lambda: listed() == 20, "all messages are counted")


def test_topics_are_listed_by_kind(tandem: Tandem) -> None:
    assert "orders" not in tandem("topic", "list", "--kind", "system").out
    assert "orders" in tandem("topic", "list", "--kind", "normal").out
    assert tandem("topic", "list", "--kind", "odd").code == 2


def test_a_group_at_work_is_shown(tandem: Tandem, cluster: Beside) -> None:
    with grpc.insecure_channel(cluster.node.address("store")) as channel:
        delivery = DeliveryStub(channel)
        request = delivery_pb2.ReceiveRequest(group="workers", topic="orders", max_messages=3, wait_ms=20_000)
        assert len(delivery.Receive(request, timeout=60).messages) == 3
        for client, tags in (("w1", "even"), ("w2", "*")):
            beat = delivery_pb2.HeartbeatRequest(client_id=client, language="GO", version="5.1")
            beat.memberships.add(group="workers").subscriptions["orders"].expression = tags
            delivery.Heartbeat(beat, timeout=60)
        commit = delivery_pb2.OffsetCommit(topic="orders", queue_id=0, offset=0)
        delivery.CommitOffsets(delivery_pb2.CommitOffsetsRequest(group="workers", commits=[commit]), timeout=60)
    wait_until(lambda: tandem("group", "list", "workers", "--json").document["total"] == 1, "metasync knows it")
    (group,) = tandem("group", "list", "workers", "--json").document["groups"]
    assert (group["view"]["consumers"], group["view"]["differing_topics"]) == (2, ["orders"])
    assert group["view"]["topics"][0]["in_flight"] == 3
    words = tandem("group", "list", "workers").out
    assert "in flight" in words
    assert "mixed, subscriptions differ" in words
    wait_until(lambda: "orders" in tandem("group", "show", "workers").out, "metasync knows its offsets")
    shown = tandem("group", "show", "workers").out
    assert "mixed, messages may come twice" in shown
    assert "orders (even)" in shown
    found = tandem("group", "members", "workers", "--json").document
    assert [(one["client_id"], one["language"], one["broker"]) for one in found["members"]] == [
        ("w1", "GO", "alpha"),
        ("w2", "GO", "alpha"),
    ]
    assert found["differing_topics"] == ["orders"]
    assert "do not subscribe alike to orders" in tandem("group", "members", "workers").out


def test_what_waits_is_shown(tandem: Tandem, cluster: Beside) -> None:
    with cluster.node.client() as client:
        client.send("later", b"x", properties={"TIMER_DELAY_SEC": "3600"})
        client.send("later", b"x", properties={"DELAY": "18"})
        client.send("halves", b"x", properties={"TRAN_MSG": "true", "PGROUP": "senders"})

    def waiting() -> Any:
        return tandem("cluster", "waiting", "--json").document["brokers"][0]["waiting"]

    wait_until(lambda: bool(waiting()["timers"] and waiting()["half_messages"] and waiting()["levels"]), "all wait")
    assert (waiting()["timers"], waiting()["halves"][0]["group"]) == (1, "senders")
    words = tandem("cluster", "waiting").out
    assert "in delay level 18" in words
    assert "half message of" in words


def test_a_group_moves(tandem: Tandem) -> None:
    assert tandem("group", "create", "billing", "--retry-times", "3").code == 0
    there = tandem("group", "reset", "billing", "orders", "--to", "earliest", "--yes", "--json").document
    assert {one["after"] for one in there["moves"]} == {0}
    progress = tandem("group", "progress", "billing", "--json").document["progress"]
    assert sum(one["lag"] for one in progress) == 20
    (listed,) = tandem("group", "list", "billing", "--json").document["groups"]
    assert (listed["lag"], listed["topics"], listed["config"]["retry_max_times"]) == (20, ["orders"], 3)
    plan = tandem("group", "reset", "billing", "orders", "--to", "latest", "--dry-run", "--json").document
    assert sum(one["after"] for one in plan["moves"]) == 20
    assert sum(one["lag"] for one in tandem("group", "progress", "billing", "--json").document["progress"]) == 20
    assert tandem("group", "reset", "billing", "orders", "--to", "latest", "--dry-run").out.startswith("This would be")
    with pytest.raises(CommandFailed, match="Nothing was done. Moving group billing in topic orders takes --yes"):
        tandem("group", "reset", "billing", "orders", "--to", "latest")
    assert tandem("group", "reset", "billing", "orders", "--to", "latest", "--yes").out.startswith("Moved:\n")
    assert tandem("group", "show", "billing", "--json").document["groups"][0]["lag"] == 0
    assert "3 times" in tandem("group", "show", "billing").out
    assert tandem("group", "delete", "billing", "--yes").code == 0
    assert tandem("group", "list", "billing", "--json").document["groups"] == []


def test_nothing_is_deleted_or_moved_unasked(tandem: Tandem) -> None:
    for command in (
        ("topic", "delete", "orders"),
        ("group", "delete", "x"),
        ("message", "resend", "x"),
    ):
        with pytest.raises(CommandFailed, match="Nothing was done.* --yes"):
            tandem(*command)
    assert tandem("topic", "list", "orders", "--json").document["total"] == 1


def test_dead_letters_are_sent_again_once(tandem: Tandem) -> None:
    tandem("message", "send", "returned", "first")
    origin = ("--property", "DLQ_ORIGIN_TOPIC=returned")
    tandem("send", "%DLQ%lost", "letter", "--key", "order-17", *origin)
    listed = tandem("message", "resend", "lost", "--dry-run").out
    assert "order-17" in listed
    assert "would be sent" in listed
    (sent,) = tandem("message", "resend", "lost", "--yes", "--json").document["messages"]
    assert (sent["topic"], sent["keys"], sent["problem"], sent["receipt"]["status"]) == (
        "returned", ["order-17"], "", "PUT_OK",
    )  # fmt: skip
    assert "sent again before" in tandem("message", "resend", "lost", "--yes").out
    assert len(tandem("message", "find", "returned", "--begin", "1h", "--json").document["messages"]) == 2
    (more,) = tandem("message", "resend", "lost", "--yes", "--again", "--json").document["messages"]
    assert more["resent_ms"] > 0
    with pytest.raises(CallFailed, match="no dead letters"):
        tandem("message", "resend", "nobody", "--yes")


def test_messages_are_found_in_every_way(tandem: Tandem) -> None:
    sent = tandem("message", "send", "finds", "hello", "--key", "a", "--tag", "T", "--json").document["receipt"]
    place = f"{sent['queue_id']}:{sent['queue_offset']}"
    ways = [
        ("--id", sent["message_id"]),
        ("finds", "--key", "a"),
        ("finds", "--unique-key", sent["unique_key"]),
        ("finds", "--at", place),
        ("finds", "--begin", "1h"),
    ]
    for way in ways:
        (found,) = tandem("message", "find", *way, "--body", "--json").document["messages"]
        assert found["message"]["message_id"] == sent["message_id"]
        assert found["message"]["body"] == "hello"
    (bare,) = tandem("message", "find", "finds", "--key", "a", "--json").document["messages"]
    assert (bare["message"]["body"], bare["body_bytes"]) == ("", 5)
    assert "hello" in tandem("message", "find", "finds", "--key", "a", "--body").out


def test_a_message_that_is_not_there_is_told(tandem: Tandem) -> None:
    with pytest.raises(NotThere):
        tandem("message", "find", "orders", "--key", "none")
    with pytest.raises(CallFailed, match="there is no topic nowhere"):
        tandem("message", "find", "nowhere", "--key", "none")


def test_a_topic_is_followed(cluster: Beside) -> None:
    command = [sys.executable, "-m", "tandemmq.cli.main", "message", "tail", "tails", "--json", "--address"]
    with cluster.node.client() as client:
        client.send("tails", b"before", queue_id=0)
        with subprocess.Popen([*command, cluster.admin.address, "--last", "1"], stdout=subprocess.PIPE) as tail:
            try:
                assert tail.stdout is not None
                assert json.loads(tail.stdout.readline())["message"]["body"] == "before"
                client.send("tails", b"after", queue_id=1)
                assert json.loads(tail.stdout.readline())["message"]["body"] == "after"
                tail.send_signal(signal.SIGINT)
                assert tail.wait(60) == 130
            finally:
                tail.kill()


@pytest.mark.slow
def test_an_audit_runs_to_its_end(tandem: Tandem) -> None:
    done = tandem("job", "start", "audit", "one", "--json")
    last = json.loads(done.out.splitlines()[-1])
    assert (done.code, last["state"], last["problem"]) == (0, "SUCCEEDED", "")
    assert json.loads(last["report_json"])["faults"] == 0
    assert tandem("job", "list", "--json").document["jobs"][0]["id"] == last["id"]
    assert "succeeded" in tandem("job", "show", last["id"]).out


def test_a_bundle_is_written(tandem: Tandem, tmp_path: Path) -> None:
    told = tandem("cluster", "bundle", str(tmp_path / "b.zip"), "--json").document
    with zipfile.ZipFile(tmp_path / "b.zip") as bundle:
        assert bundle.testzip() is None
        assert any(name.endswith("/cluster.json") for name in bundle.namelist())
    assert told["bytes"] == (tmp_path / "b.zip").stat().st_size
    assert [one.name for one in tmp_path.iterdir()] == ["b.zip"]


def test_what_was_done_is_listed(tandem: Tandem) -> None:
    assert tandem("topic", "create", "listed").code == 0
    actions = tandem("cluster", "actions", "--json").document["actions"]
    assert any(one["method"].endswith("PutTopic") and "listed" in one["request_json"] for one in actions)
    assert "PutTopic" in tandem("cluster", "actions").out


def test_all_is_well(tandem: Tandem) -> None:
    done = tandem("check", "--json", "--disk-warning", "100", "--disk-critical", "100")
    assert (done.document["state"], done.document["findings"], done.code) == ("OK", [], 0)
    assert tandem("check", "--disk-warning", "100", "--disk-critical", "100").out.startswith("TANDEMMQ OK: 1 node, ")


def test_nobody_answers_is_unknown(tandem: Tandem) -> None:
    done = tandem("check", "--address", "127.0.0.1:1", "--json")
    assert (done.document["state"], done.code) == ("UNKNOWN", 3)


def test_a_full_disk_is_critical(tandem: Tandem) -> None:
    done = tandem("check", "--disk-warning", "0", "--disk-critical", "0")
    assert done.code == 2
    assert done.out.startswith("TANDEMMQ CRITICAL: disk of one is ")


def test_top_prints_a_line_a_look(tandem: Tandem) -> None:
    lines = tandem("top", "--count", "2", "--interval", "0.2", "--json").out.splitlines()
    assert len(lines) == 2
    assert {one["topic"] for one in json.loads(lines[1])["topics"]} >= {"orders"}
    assert "one " in tandem("top", "--count", "1").out


def test_top_looks_at_all_pages_of_topics_and_groups(tandem: Tandem, monkeypatch: pytest.MonkeyPatch) -> None:
    for group in ("early", "late"):
        assert tandem("group", "create", group).code == 0
        assert tandem("group", "reset", group, "orders", "--to", "earliest", "--yes").code == 0

    def look() -> tuple[set[str], set[str]]:
        (line,) = tandem("top", "--count", "1", "--json").out.splitlines()
        seen = json.loads(line)
        return {one["topic"] for one in seen["topics"]}, {one["group"] for one in seen["groups"]}

    wait_until(lambda: look()[1] >= {"early", "late"}, "admin has looked at both groups")
    at_once = look()
    assert "orders" in at_once[0]
    assert len(at_once[0]) > 1
    monkeypatch.setattr(top, "_PAGE", 1)
    assert look() == at_once


async def test_bench_measures_each_call_once_whatever_the_time() -> None:
    """On a machine that is so busy that its time is over before it begins."""

    async def send(_client: object, _plan: object) -> None:
        sent.append(1)

    sent: list[int] = []
    plan = bench._Plan("orders", 0.0, b"", 3, 10)
    measure = await bench._measure("sends", 3, [Any], plan, send, 10)  # type: ignore[list-item]
    assert (len(sent), measure.calls, measure.messages) == (3, 3, 30)


@pytest.mark.slow
def test_bench_measures_what_runs(tandem: Tandem) -> None:
    measures = tandem("bench", "--seconds", "0.2", "--size", "100", "--clients", "20", "--json").document["measures"]
    assert [one["messages"] > 0 for one in measures] == [True] * 4
    assert all(one["percentiles"]["50"] > 0 for one in measures)
