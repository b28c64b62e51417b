"""Every command against a real store, as a person runs it and as a program does: real processes, their output."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tandemmq.client import StoreClient
from tests.campaigns import in_campaigns, rows_in_campaigns
from tests.contract.store_process import StoreProcess
from tests.faults.pair_process import free_port

pytestmark = [pytest.mark.xdist_group("cli"), pytest.mark.timeout(300)]

SMALL = (
    "mappedFileSizeCommitLog=4194304",
    "maxHashSlotNum=1000",
    "maxIndexNum=4000",
    "grpcPort=0",
    "metricsPort=0",
    "internalPort=0",
)


@dataclass(frozen=True)
class Outcome:
    """What a command left."""

    code: int
    out: str
    err: str

    @property
    def lines(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.out.splitlines()]

    @property
    def document(self) -> Any:
        return json.loads(self.out)


def tandem(*arguments: str, given: str | None = None, environment: dict[str, str] | None = None) -> Outcome:
    command = [sys.executable, "-m", "tandemmq.cli.main", *arguments]
    done = subprocess.run(
        command, input=given, capture_output=True, text=True, env={**os.environ, **(environment or {})}, check=False,
        stdin=subprocess.DEVNULL if given is None else None, timeout=100,
    )  # fmt: skip
    assert "Traceback" not in done.stderr
    return Outcome(done.returncode, done.stdout, done.stderr)


class RunningStore:
    """`tandem serve store --json` in a process."""

    def __init__(self, directory: Path, *settings: str) -> None:
        options = [part for setting in (*SMALL, *settings) for part in ("--set", setting)]
        command = [sys.executable, "-m", "tandemmq.cli.main", "store", "--json", "--data", str(directory), *options]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        assert self.process.stdout is not None
        self.serving = json.loads(self.process.stdout.readline())
        self.directory = directory

    def __call__(self, command: str, *arguments: str, given: str | None = None) -> Outcome:
        return tandem(command, *arguments, "--address", self.serving["address"], given=given)

    def stop(self, number: int = signal.SIGTERM) -> list[str]:
        """End it; gives the lines it printed since."""
        self.process.send_signal(number)
        out, _ = self.process.communicate(timeout=60)
        return out.splitlines()


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningStore]:
    running = RunningStore(tmp_path_factory.mktemp("cli") / "store")
    yield running
    running.stop()


# -- store ------------------------------------------------------------------------------------------------------------


def test_store_says_where_it_listens_and_what_recovery_did(tmp_path: Path) -> None:
    first = RunningStore(tmp_path / "store")
    assert first.serving["event"] == "serving"
    assert first.serving["directory"] == str(tmp_path / "store")
    assert first.serving["log"] == {"min_offset": 0, "max_offset": 0}
    assert first("send", "orders", "one").code == 0
    first.stop(signal.SIGKILL)

    second = RunningStore(tmp_path / "store")
    assert second.serving["recovery"]["clean_exit"] is False
    assert second.serving["log"]["max_offset"] > 0
    assert second("pull", "orders", "--json").lines[0]["body"] == "one"
    assert json.loads(second.stop()[-1]) == {"event": "stopped"}
    assert second.process.returncode == 0

    third = RunningStore(tmp_path / "store")
    assert third.serving["recovery"]["clean_exit"] is True
    third.stop()


def test_store_in_words(tmp_path: Path) -> None:
    options = [part for setting in SMALL for part in ("--set", setting)]
    command = [sys.executable, "-m", "tandemmq.cli.main", "store", "--data", str(tmp_path / "s"), *options]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        assert process.stdout is not None
        told = [process.stdout.readline() for _ in range(6)]
        process.terminate()
        assert process.wait(60) == 0
    assert told[0] == "The store is serving; stop it with Ctrl-C.\n"
    assert "127.0.0.1:" in told[1]
    assert "/metrics" in told[2]
    assert str(tmp_path / "s") in told[3]
    assert "ASYNC_FLUSH" in told[4]
    assert "new store" in told[5]


def test_store_on_a_directory_in_use_is_refused(store: RunningStore) -> None:
    again = tandem(
        "store",
        "--data",
        str(store.directory),
        "--set",
        "grpcPort=0",
        "--set",
        "metricsPort=0",
        "--set",
        "internalPort=0",
    )
    assert again.code == 1
    last = again.err.splitlines()[-1]
    assert last.startswith("tandem: ")
    assert str(store.directory) in last


def test_store_on_a_port_in_use_is_refused_in_one_line(store: RunningStore, tmp_path: Path) -> None:
    port = store.serving["address"].rpartition(":")[2]
    again = tandem("store", "--data", str(tmp_path / "s"), "--set", f"grpcPort={port}", "--set", "logLevel=ERROR")
    assert again.code == 1
    assert again.err.startswith("tandem: ")
    assert len(again.err.splitlines()) == 1


@pytest.mark.parametrize("command", ["settings", *in_campaigns("store")])
def test_a_misspelt_setting_names_the_nearest(command: str) -> None:
    refused = tandem(command, "--set", "flushDisktype=SYNC_FLUSH")
    assert (refused.code, refused.out) == (2, "")
    assert refused.err.startswith("tandem: ")
    assert "did you mean flushDiskType?" in refused.err
    assert len(refused.err.splitlines()) == 1


# -- send -------------------------------------------------------------------------------------------------------------


def test_send_one_in_words(store: RunningStore) -> None:
    sent = store("send", "words", "hello", "--tag", "greeting")
    assert (sent.code, sent.err) == (0, "")
    assert sent.out.startswith("PUT_OK  words  queue ")


def test_send_one_with_everything_and_get_it_back(store: RunningStore) -> None:
    options = ("--tag", "coffee", "--key", "order-17", "--key", "table-4", "--property", "shop=nord=1", "--queue", "2")
    receipt = store("send", "orders", "one espresso", *options, "--json").document
    assert receipt["status"] == "PUT_OK"
    assert receipt["queue_id"] == 2
    viewed = store("view", receipt["message_id"], "--json").document
    assert viewed["body"] == "one espresso"
    assert viewed["tag"] == "coffee"
    assert viewed["keys"] == ["order-17", "table-4"]
    assert viewed["properties"]["shop"] == "nord=1"
    assert {name: viewed[name] for name in receipt if name != "status"} == {
        name: value for name, value in receipt.items() if name != "status"
    }


@pytest.mark.parametrize("arguments", [(), *in_campaigns(("-",))])
def test_send_takes_the_body_from_standard_input_as_it_is(store: RunningStore, arguments: tuple[str, ...]) -> None:
    receipt = store("send", "piped", *arguments, "--json", given="two\nlines\n").document
    assert store("view", receipt["message_id"], "--json").document["body"] == "two\nlines\n"


def test_send_a_file_line_by_line(store: RunningStore, tmp_path: Path) -> None:
    (tmp_path / "lines").write_text("".join(f"line {n}\n" for n in range(250)))
    sent = store("send", "lines", "--file", str(tmp_path / "lines"), "--batch", "40", "--queue", "1", "--json")
    assert [line["queue_offset"] for line in sent.lines] == list(range(250))
    pulled = store("pull", "lines", "--queue", "1", "--max", "0", "--json")
    assert [line["body"] for line in pulled.lines] == [f"line {n}" for n in range(250)]


def test_send_the_same_many_times_and_tell_the_rate(store: RunningStore) -> None:
    sent = store("send", "many", "again", "--count", "300", "--tag", "t")
    assert sent.code == 0
    assert sent.out.startswith("PUT_OK  300 messages, 1.5 kB, to 4 queues in ")
    counted = store("offsets", "many", "--json").document["topics"][0]["queues"]
    assert sum(queue["messages"] for queue in counted) == 300


@pytest.mark.parametrize("word", ["--tag", "-t", "--filter"])
def test_consume_by_a_tag(store: RunningStore, word: str) -> None:
    topic = f"tags{word}"
    for body, tag in (("one", "a"), ("two", "b"), ("three", "a")):
        assert store("send", topic, body, "--tag", tag, "--queue", "0").code == 0
    given = store("consume", "tagged", topic, word, "b", "--count", "1", "--json")
    assert [line["body"] for line in given.lines] == ["two"]


def test_send_a_file_where_no_store_is_says_that_nothing_was_acknowledged(tmp_path: Path) -> None:
    (tmp_path / "lines").write_text("one\ntwo\n")
    refused = tandem("send", "rest", "--file", str(tmp_path / "lines"), "--address", "127.0.0.1:1")
    assert refused.code == 1
    assert refused.err.splitlines()[0] == "No message was acknowledged."


@pytest.mark.slow
def test_recall_takes_back_what_waits_for_its_time(store: RunningStore) -> None:
    (sent,) = store("send", "reminders", "later", "--delay", "1h", "--json").lines
    recalled = store("recall", "reminders", sent["recall_handle"], "--json")
    assert recalled.document == {"topic": "reminders", "unique_key": sent["unique_key"]}
    (other,) = store("send", "reminders", "soon", "--delay", "200ms", "--json").lines
    (given,) = store("consume", "reminded", "reminders", "--count", "1", "--follow", "--json").lines
    assert given["body"] == "soon"
    late = store("recall", "reminders", other["recall_handle"])
    assert late.code == 1
    assert len(late.err.splitlines()) == 1
    assert store("recall", "reminders", "nonsense").code == 1


def test_send_what_is_illegal_is_refused_in_one_line(store: RunningStore) -> None:
    refused = store("send", "no such name!", "x")
    assert (refused.code, refused.out) == (1, "")
    assert "other characters than" in refused.err
    assert len(refused.err.splitlines()) == 1


@pytest.mark.slow
def test_send_many_of_which_one_is_illegal_says_how_many_are_stored(store: RunningStore, tmp_path: Path) -> None:
    (tmp_path / "lines").write_bytes(b"good\n" * 10 + b"x" * (4 << 20) + b"y\n")
    refused = store("send", "mixed", "--file", str(tmp_path / "lines"), "--batch", "5")
    assert refused.code == 1
    assert refused.out.startswith("PUT_OK  10 messages")
    assert "maxMessageSize" in refused.err
    assert "1 of 11 messages were not stored" in refused.err


def test_send_more_than_a_request_can_hold_is_refused_in_one_line(store: RunningStore) -> None:
    refused = store("send", "big", given="x" * 20_000_000)
    assert (refused.code, refused.out) == (1, "")
    assert refused.err.startswith("tandem: ")
    assert "grpcMaxMessageSize" in refused.err
    assert len(refused.err.splitlines()) == 1


def test_an_error_is_json_with_json(store: RunningStore) -> None:
    refused = store("send", "orders", "x", "--queue", "99", "--json")
    error = json.loads(refused.err)["error"]
    assert (refused.code, refused.out) == (1, "")
    assert (error["status"], error["rocketmq_status"]) == ("OUT_OF_RANGE", "MESSAGE_ILLEGAL")


# -- pull -------------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def drinks(store: RunningStore) -> list[dict[str, Any]]:
    """Receipts of twelve messages in four queues, three kinds of them."""
    kinds = ["coffee", "tea", "water"]
    with StoreClient(store.serving["address"]) as client:  # the command would take half a second for each
        receipts = [
            client.send("drinks", f"{kinds[n % 3]} {n}".encode(), tag=kinds[n % 3], keys=[f"order-{n}"])
            for n in range(12)
        ]
    return [{"message_id": one.message_id, "unique_key": one.unique_key} for one in receipts]


def test_pull_gives_all_queues_in_the_order_of_arrival(store: RunningStore, drinks: list[dict[str, Any]]) -> None:
    pulled = store("pull", "drinks", "--json")
    assert [line["message_id"] for line in pulled.lines] == [receipt["message_id"] for receipt in drinks]
    assert pulled.err == ""


def test_pull_in_words(store: RunningStore, drinks: list[dict[str, Any]]) -> None:
    pulled = store("pull", "drinks", "--max", "2")
    assert pulled.out.splitlines()[1] == "coffee 0"
    assert "tag coffee" in pulled.out
    assert pulled.err == "2 messages; there are more: see --max and --offset\n"
    without = store("pull", "drinks", "--max", "2", "--no-body")
    assert len(without.out.splitlines()) == 2
    assert "\x1b" not in pulled.out + pulled.err


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (("--tag", "tea || water", "--max", "3"), [1, 2, 4]),
        (("--offset", "2"), [8, 9, 10, 11]),
        *rows_in_campaigns(
            (("--tag", "tea"), [1, 4, 7, 10]),
            (("--tag", "*", "--max", "1"), [0]),
            (("--tag", "beer"), []),
            (("--offset", "max"), []),
            (("--offset", "1h", "--max", "1"), [0]),
            (("--offset", "now"), []),
            (("--offset", "99"), []),
        ),
    ],
)
def test_pull_chooses(
    store: RunningStore, drinks: list[dict[str, Any]], options: tuple[str, ...], expected: list[int]
) -> None:
    pulled = store("pull", "drinks", *options, "--json")
    assert pulled.code == 0
    assert [int(line["body"].split()[1]) for line in pulled.lines] == expected


@pytest.mark.slow
def test_pull_of_one_queue(store: RunningStore, drinks: list[dict[str, Any]]) -> None:
    pulled = store("pull", "drinks", "--queue", "1", "--json")
    assert {line["queue_id"] for line in pulled.lines} == {1}
    assert [line["queue_offset"] for line in pulled.lines] == [0, 1, 2]


def test_pull_says_when_an_offset_is_behind_the_end(store: RunningStore, drinks: list[dict[str, Any]]) -> None:
    pulled = store("pull", "drinks", "--queue", "0", "--offset", "50")
    assert "queue 0: offset 50 is beyond the end, 3" in pulled.err


def test_pull_follows_until_interrupted(store: RunningStore) -> None:
    store("send", "news", "old")
    command = [sys.executable, "-m", "tandemmq.cli.main", "pull", "news", "--follow", "--offset", "min", "--json"]
    with subprocess.Popen(
        [*command, "--address", store.serving["address"]],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as follower:
        assert follower.stdout is not None
        assert follower.stderr is not None
        for body in ("old", "first", "second"):
            if body != "old":
                store("send", "news", body)
            assert json.loads(follower.stdout.readline())["body"] == body
        follower.send_signal(signal.SIGINT)
        assert follower.wait(60) == 130
        assert follower.stderr.read() == ""


def test_pull_follows_over_a_restart(tmp_path: Path) -> None:
    with StoreProcess(tmp_path / "store", grpc_port=free_port()) as process:
        with process.client() as client:
            client.send("news", b"first", queue_id=0)
        command = [sys.executable, "-m", "tandemmq.cli.main", "pull", "news", "--follow", "--offset", "min"]
        with subprocess.Popen(
            [*command, "--address", process.address], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        ) as follower:
            assert follower.stdout is not None
            assert follower.stderr is not None
            shown = [follower.stdout.readline() for _ in range(3)]  # where it lies, its body, an empty line
            assert shown[1] == "first\n"
            process.stop(signal.SIGKILL)
            assert "no answer, trying again" in follower.stderr.readline()
            process.start()
            with process.client() as client:
                client.send("news", b"second", queue_id=1)
                client.send("news", b"third", queue_id=0)
            shown = [follower.stdout.readline() for _ in range(6)]
            assert {shown[1], shown[4]} == {"second\n", "third\n"}
            follower.send_signal(signal.SIGINT)
            assert follower.wait(60) == 130
            assert follower.stderr.read() == "", "it was said once, whatever the number of queues"


def test_pull_follows_up_to_a_number(store: RunningStore, drinks: list[dict[str, Any]]) -> None:
    pulled = store("pull", "drinks", "--follow", "--offset", "min", "--max", "12", "--json")
    assert pulled.code == 0
    assert {line["message_id"] for line in pulled.lines} == {receipt["message_id"] for receipt in drinks}


def test_bodies_that_are_not_text(store: RunningStore, tmp_path: Path) -> None:
    (tmp_path / "binary").write_bytes(b"\xff\xfe\x00\x01\x1b[2J")
    store("send", "binary", "--file", str(tmp_path / "binary"))
    assert store("pull", "binary", "--json").lines[0]["body_base64"] == "//4AARtbMko="
    assert "(not text) ff fe 00 01 1b 5b 32 4a" in store("pull", "binary").out


# -- query, view ------------------------------------------------------------------------------------------------------


def test_query_by_key_and_by_unique_key(store: RunningStore, drinks: list[dict[str, Any]]) -> None:
    by_key = store("query", "drinks", "--key", "order-7", "--json")
    assert [line["message_id"] for line in by_key.lines] == [drinks[7]["message_id"]]
    assert "body" not in by_key.lines[0]
    by_unique = store("query", "drinks", "--unique-key", drinks[5]["unique_key"], "--body", "--json")
    assert [line["body"] for line in by_unique.lines] == ["water 5"]


def test_query_in_words(store: RunningStore, drinks: list[dict[str, Any]]) -> None:
    found = store("query", "drinks", "--key", "order-3", "--begin", "1h", "--end", "now")
    assert found.out.splitlines()[0].split() == ["stored", "queue", "offset", "tag", "keys", "bytes", "message", "id"]
    assert drinks[3]["message_id"] in found.out


@pytest.mark.slow
def test_query_that_finds_nothing(store: RunningStore, drinks: list[dict[str, Any]]) -> None:
    for options in (("--key", "order-99"), ("--key", "order-3", "--end", "1h")):
        nothing = store("query", "drinks", *options)
        assert (nothing.code, nothing.out) == (1, "")
        assert nothing.err.startswith("tandem: no message of topic drinks has the key ")


@pytest.mark.parametrize("options", [(), *in_campaigns(("--key", "a", "--unique-key", "b"))])
def test_query_without_a_key_or_with_two_is_wrong_usage(store: RunningStore, options: tuple[str, ...]) -> None:
    refused = store("query", "drinks", *options)
    assert refused.code == 2
    assert "give one of --key and --unique-key" in refused.err


def test_view_in_words(store: RunningStore, drinks: list[dict[str, Any]]) -> None:
    viewed = store("view", drinks[1]["message_id"]).out
    assert "drinks" in viewed
    assert "order-1" in viewed
    assert viewed.endswith("\ntea 1\n")


@pytest.mark.parametrize(
    ("message_id", "status", "words"),
    [
        ("7F00000100002A9F7FFFFFFFFFFFFF00", "NOT_FOUND", "No message begins at"),
        *rows_in_campaigns(("Nonsense", "INVALID_ARGUMENT", "32 or 56 characters: 'Nonsense'")),
    ],
)
def test_view_of_what_is_not_there(store: RunningStore, message_id: str, status: str, words: str) -> None:
    refused = store("view", message_id)
    assert refused.code == 1
    assert words in refused.err
    assert json.loads(store("view", message_id, "--json").err)["error"]["status"] == status


def test_view_of_a_unique_key_says_how_to_find_the_message(store: RunningStore, drinks: list[dict[str, Any]]) -> None:
    key = drinks[1]["unique_key"]
    refused = store("view", key)
    assert refused.code == 1
    assert f"it looks like a unique key: tandem message query TOPIC --unique-key {key}" in refused.err
    assert json.loads(store("view", key, "--json").err)["error"]["status"] == "NOT_FOUND"


# -- offsets ----------------------------------------------------------------------------------------------------------


def test_offsets_of_a_topic(store: RunningStore, drinks: list[dict[str, Any]]) -> None:
    document = store("offsets", "drinks", "--time", "now", "--json").document
    (topic,) = document["topics"]
    assert [queue["queue_id"] for queue in topic["queues"]] == [0, 1, 2, 3]
    assert all(
        (queue["min_offset"], queue["max_offset"], queue["offset_at_time"]) == (0, 3, 3) for queue in topic["queues"]
    )
    assert document["log"]["writable"] is True


def test_offsets_of_all_topics_in_words(store: RunningStore, drinks: list[dict[str, Any]]) -> None:
    listed = store("offsets").out.splitlines()
    assert listed[0].split() == ["topic", "queue", "min", "max", "messages"]
    assert any(line.split() == ["drinks", "3", "0", "3", "3"] for line in listed)
    assert listed[-1].startswith("log: 0 to ")


@pytest.mark.slow
def test_offsets_of_an_unknown_topic(store: RunningStore) -> None:
    refused = store("offsets", "nowhere")
    assert (refused.code, refused.out) == (1, "")
    assert "no topic nowhere" in refused.err


# -- where the store is -----------------------------------------------------------------------------------------------


def test_the_address_can_come_from_the_environment(store: RunningStore) -> None:
    assert tandem("offsets", "--json", environment={"TANDEM_ADDRESS": store.serving["address"]}).code == 0
    shown = tandem("settings", "--json", environment={"TANDEM_ADDRESS": store.serving["address"]})
    assert shown.code == 0, "it is no setting of the store"


@pytest.mark.parametrize(
    "arguments",
    [("send", "t", "x"), *in_campaigns(("pull", "t"), ("query", "t", "--key", "k"), ("view", "0" * 32), ("offsets",))],
)
def test_no_store_there(arguments: tuple[str, ...]) -> None:
    refused = tandem(*arguments, "--address", "127.0.0.1:1")
    assert (refused.code, refused.out) == (1, "")
    assert refused.err == (
        "tandem: no store answers at 127.0.0.1:1; `tandem up` starts one; or name its address with --address\n"
    )


def test_an_address_that_is_none() -> None:
    refused = tandem("offsets", "--address", "somewhere")
    assert refused.code == 2
    assert "HOST:PORT" in refused.err


# -- settings ---------------------------------------------------------------------------------------------------------


def test_settings_with_their_origins(tmp_path: Path) -> None:
    (tmp_path / "broker.conf").write_text("flushDiskType=SYNC_FLUSH\nhaListenPort=10912\nlongPollingEnable=true\n")
    shown = tandem(
        "settings", "--config", str(tmp_path / "broker.conf"), "--set", "maxMessageSize=1000", "--json",
        environment={"TANDEM_BROKER_NAME": "b1"},
    ).document  # fmt: skip
    by_name = {one["name"]: one for one in shown["settings"]}
    assert (by_name["flushDiskType"]["value"], by_name["flushDiskType"]["origin"]["layer"]) == ("SYNC_FLUSH", "file")
    assert (by_name["maxMessageSize"]["value"], by_name["maxMessageSize"]["origin"]["layer"]) == ("1000", "override")
    assert by_name["brokerName"]["origin"]["place"] == "TANDEM_BROKER_NAME"
    assert by_name["mappedFileSizeCommitLog"]["value"] == str(1 << 30), "with a file, RocketMQ's own defaults"
    assert all(one["doc"] for one in shown["settings"])
    assert "longPollingEnable" in shown["without_effect"]
    assert "haListenPort" not in shown["without_effect"], "the replicator's, who reads the same file"


def test_settings_in_words() -> None:
    changed = tandem("settings", "--changed").out
    assert "profile embedded" in changed
    assert "storePathRootDir" in changed
    assert "flushDiskType" not in changed


# -- usage ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "arguments",
    [
        ("sned",), ("pull", "t", "--max", "many"), ("send", "t", "x", "--transaction", "--delay", "5s"),
        *in_campaigns(
            ("send",), ("pull", "t", "--queue", "first"), ("settings", "--set", "x"), ("demo", "extra"),
            ("send", "t", "x", "--property", "novalue"), ("send", "t", "x", "--file", "y"),
        ),
    ],
)  # fmt: skip
def test_a_wrong_command_line_exits_with_2(store: RunningStore, arguments: tuple[str, ...]) -> None:
    refused = tandem(*arguments, environment={"TANDEM_ADDRESS": store.serving["address"]})
    assert (refused.code, refused.out) == (2, "")
    assert refused.err.startswith("tandem: ")
    assert "; see `tandem" in refused.err


@pytest.mark.parametrize(
    "arguments",
    [
        ("send", "t", "x", "--at", "tomorrow"),
        *in_campaigns(("send", "t", "x", "--delay", "10"), ("pull", "t", "--offset", "soon")),
        *in_campaigns(("worker", "orders", "kitchen", "orders"), ("bench", "--address", "foo")),
        *in_campaigns(("audit", "nowhere", "--running", "foo")),
    ],
)
def test_what_cannot_be_meant_exits_with_2_in_one_line(store: RunningStore, arguments: tuple[str, ...]) -> None:
    refused = tandem(*arguments, environment={"TANDEM_ADDRESS": store.serving["address"]})
    assert (refused.code, refused.out) == (2, "")
    assert refused.err.startswith("tandem: ")
    assert len(refused.err.splitlines()) == 1


def test_a_file_that_is_not_there(store: RunningStore) -> None:
    refused = store("send", "t", "--file", "/nowhere/lines")
    assert (refused.code, refused.err) == (2, "tandem: /nowhere/lines: No such file or directory\n")


def test_the_version() -> None:
    assert tandem("--version").out.startswith("tandem 0.")


# -- what the README shows --------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_the_python_example_of_the_readme(store: RunningStore) -> None:
    readme = (Path(__file__).resolve().parents[2] / "README.md").read_text()
    program = readme.partition("```python\n")[2].partition("```")[0]
    assert "127.0.0.1:8081" in program
    shown = subprocess.run(
        [sys.executable, "-c", program.replace("127.0.0.1:8081", store.serving["address"])],
        capture_output=True, text=True, check=True, timeout=100,
    )  # fmt: skip
    assert "coffee b'one espresso'" in shown.stdout
