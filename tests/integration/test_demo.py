"""The demo: that it works, that it says so, and that it would say so if it did not."""

import json
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from tandemmq.cli.demo import steps
from tandemmq.cli.demo.ledger import DemoLedger, ReceiptPlace
from tandemmq.cli.demo.material import LIBRARY, PACKAGES, Item, gather
from tandemmq.cli.demo.pair_story import PairDemo
from tandemmq.cli.demo.proof import Proof, first_difference, is_empty, stored_twice
from tandemmq.cli.demo.story import Demo
from tandemmq.cli.demo.teller import Teller
from tandemmq.cli.main import app
from tandemmq.cli.talk.failures import CommandFailed
from tandemmq.cli.talk.output import Output
from tandemmq.store.format.host import Host
from tandemmq.store.format.message import Message
from tandemmq.store.format.properties import encode
from tandemmq.store.format.record import Record, decode_record, encode_record

pytestmark = [pytest.mark.xdist_group("up"), pytest.mark.timeout(400)]

# -- the whole demo ---------------------------------------------------------------------------------------------------


def demo(directory: Path, *options: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "tandemmq.cli.main", "demo", "--data", str(directory), *options]
    done = subprocess.run(command, capture_output=True, text=True, timeout=400, check=False)
    assert "Traceback" not in done.stderr
    return done


def told(outcome: subprocess.CompletedProcess[str]) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """The steps of a demo with --json, and its verdict."""
    assert outcome.returncode == 0, outcome.stdout + outcome.stderr
    *steps, verdict = [json.loads(line) for line in outcome.stdout.splitlines()]
    return steps, verdict


def inspect(directory: Path) -> dict[str, Any]:
    command = [sys.executable, "-m", "tandemmq.cli.main", "inspect", str(directory), "--json"]
    inspected = subprocess.run(command, capture_output=True, text=True, check=False)
    assert inspected.returncode == 0, inspected.stdout
    document: dict[str, Any] = json.loads(inspected.stdout)
    return document


@pytest.mark.serial
@pytest.mark.slow
@pytest.mark.timeout(900)
def test_two_nodes_lose_nothing_and_earlier_nodes_go_on(tmp_path: Path) -> None:
    steps, verdict = told(demo(tmp_path / "data", "--json"))
    by_title: dict[str, Any] = {step["title"]: step for step in steps}
    assert verdict["verdict"] == "nothing lost"
    assert verdict["acknowledged"] >= 5_000
    assert verdict["seconds"] > 0, "under a minute where nothing else runs"
    assert by_title["Start"]["disk_bytes"] < 200_000_000
    assert by_title["Start"]["memory_bytes"] < 150_000_000
    kills = [step for step in steps if step["title"] == "Kill"]
    killed = {tuple(victim) for step in kills for victim in step["killed"]}
    assert killed == {(node, one) for node in ("a", "b") for one in ("store", "metasync", "replicator")}
    assert all(step["acknowledged"] + step["found_later"] + step["not_stored"] == step["sent"] for step in kills)
    assert kills[-1]["sent"] > kills[-1]["acknowledged"], "the master's store was killed while messages were sent"
    assert by_title["Read on"]["same"] == by_title["Read there"]["same"] == verdict["acknowledged"]
    assert by_title["Look up"]["found"] == by_title["Look up"]["looked_up"]
    assert by_title["Compare"]["equal"] is True
    assert by_title["Compare"]["log_files"] >= 1
    assert by_title["Compare"]["queue_files"] >= 2

    master, slave = (inspect(one) for one in (tmp_path / "data", tmp_path / "data" / "b"))
    assert master["records"] == slave["records"] >= verdict["acknowledged"]
    assert master["max_offset"] == slave["max_offset"] == by_title["Stop"]["log_end"]

    again = demo(tmp_path / "data")
    assert again.returncode == 0, again.stdout + again.stderr
    assert "The nodes of an earlier demo go on" in again.stdout
    assert "Nothing is lost." in again.stdout
    assert "tandem up --slave --data" in again.stdout
    assert "\x1b" not in again.stdout


@pytest.mark.serial
@pytest.mark.slow
@pytest.mark.timeout(900)
def test_one_store_loses_nothing_and_an_earlier_store_goes_on(tmp_path: Path) -> None:
    steps, verdict = told(demo(tmp_path / "data", "--single", "--json"))
    by_title: dict[str, Any] = {step["title"]: step for step in steps}
    assert verdict["verdict"] == "nothing lost"
    assert verdict["acknowledged"] >= 5_000
    assert verdict["seconds"] > 0, "under a minute where nothing else runs"
    assert by_title["Start"]["disk_bytes"] < 200_000_000
    assert by_title["Start"]["memory_bytes"] < 150_000_000
    assert by_title["Kill"]["without_receipt"] > 0, "it was killed while it was sending"
    assert by_title["Start again"]["recovery"]["clean_exit"] is False
    assert by_title["Read on"]["same"] == verdict["acknowledged"]
    assert by_title["Look up"]["found"] == by_title["Look up"]["looked_up"]
    assert inspect(tmp_path / "data")["records"] >= verdict["acknowledged"]

    again = demo(tmp_path / "data", "--single")
    assert again.returncode == 0, again.stdout + again.stderr
    assert "The store of an earlier demo goes on" in again.stdout
    assert "Nothing is lost." in again.stdout
    assert "tandem up --data" in again.stdout


@pytest.mark.slow
def test_a_directory_in_use_ends_the_demo_in_one_line(tmp_path: Path) -> None:
    from tandemmq.cli.demo.child import StoreProcess

    other = StoreProcess(tmp_path / "data")
    other.start()
    try:
        refused = demo(tmp_path / "data", "--single")
    finally:
        other.stop()
    assert refused.returncode == 1
    assert refused.stderr.startswith("tandem: the store did not start: ")
    assert len(refused.stderr.splitlines()) == 1


@pytest.mark.slow
def test_a_node_in_use_ends_the_demo_of_two_in_one_line(tmp_path: Path) -> None:
    from tandemmq.cli.demo.child import StoreProcess

    (tmp_path / "data" / "b" / "commitlog").mkdir(parents=True)  # as an earlier demo of two has left it
    other = StoreProcess(tmp_path / "data")
    other.start()
    try:
        refused = demo(tmp_path / "data")
    finally:
        other.stop()
    assert refused.returncode == 1
    assert refused.stderr.startswith("tandem: the nodes did not start: a store did not start")
    assert "in use by another process" in refused.stderr
    assert len(refused.stderr.splitlines()) == 1


@pytest.mark.slow
@pytest.mark.serial
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_no_process_outlives_the_demo(number: int, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "tandemmq.cli.main", "demo", "--json", "--data", str(tmp_path / "data")]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    assert process.stdout is not None
    while json.loads(process.stdout.readline())["title"] != "Send":
        pass
    assert len(processes_of(tmp_path)) == 8, "demo, supervisor, six services"
    process.send_signal(number)
    process.stdout.close()
    process.wait(60)
    until = time.monotonic() + 60
    while (left := processes_of(tmp_path)) and time.monotonic() < until:
        time.sleep(0.05)
    assert not left


def processes_of(directory: Path) -> list[str]:
    """Command lines of processes that name a directory."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):
            line = path.read_bytes().replace(b"\0", b" ").decode()
            if str(directory) in line:
                found.append(line)
    return found


@pytest.mark.slow
@pytest.mark.parametrize("taken_by", ["commitlog", "master/commitlog"])
def test_the_demo_works_beside_what_store_and_up_have_left(
    taken_by: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "data" / taken_by).mkdir(parents=True)
    ran: list[Path] = []
    monkeypatch.setattr(PairDemo, "run", lambda demo: ran.append(demo._directory))
    outcome = CliRunner().invoke(app, ["demo"])
    assert outcome.exit_code == 1, "nothing was shown"
    assert ran == [Path("data/demo")]


def test_the_directory_of_a_single_store_is_not_taken_for_two_nodes(tmp_path: Path) -> None:
    (tmp_path / "commitlog").mkdir()
    refused = demo(tmp_path)
    assert refused.returncode == 1
    assert "is the directory of a single store" in refused.stderr


# -- its input --------------------------------------------------------------------------------------------------------

STATUS = """\
Package: bash
Section: shells
Description: a shell
 more: of it

Package: coreutils
Description: tools
"""


def library(root: Path) -> Path:
    (root / "json").mkdir(parents=True)
    (root / "json" / "decoder.py").write_text("import re\n\ndef scan():\n    pass\n\nclass Decoder:\n    x = 1\n")
    (root / "ast.py").write_text("pass\n")
    (root / "test").mkdir()
    (root / "test" / "big.py").write_text("def no(): ...\n")
    return root


def test_packages_come_first_then_files_then_what_is_in_them(tmp_path: Path) -> None:
    (tmp_path / "status").write_text(STATUS)
    material = gather(6, tmp_path / "status", library(tmp_path / "lib"))
    assert [(item.topic, item.key, item.tag) for item in material.items] == [
        (PACKAGES, "bash", "shells"),
        (PACKAGES, "coreutils", "unknown"),
        (LIBRARY, "ast.py", "single"),
        (LIBRARY, "json/decoder.py", "json"),
        (LIBRARY, "json/decoder.py:scan", "json"),
        (LIBRARY, "json/decoder.py:Decoder", "json"),
    ]
    assert material.items[0].body == STATUS.split("\n\n")[0].encode()
    assert material.items[4].body == b"def scan():\n    pass\n\n"
    assert material.items[5].body == b"class Decoder:\n    x = 1\n"
    assert [source.split()[0] for source in material.sources] == ["2", "2", "2"]


def test_enough_packages_need_no_library(tmp_path: Path) -> None:
    (tmp_path / "status").write_text(STATUS)
    assert len(gather(2, tmp_path / "status", tmp_path / "nothing").items) == 2


def test_a_machine_without_texts_is_told_so(tmp_path: Path) -> None:
    with pytest.raises(CommandFailed, match="only 4 texts"):
        gather(5, tmp_path / "no status", library(tmp_path / "lib"))


@pytest.mark.slow
def test_this_machine_has_enough() -> None:
    items = gather(5_000).items
    assert len(items) >= 5_000
    assert all(item.key and " " not in item.key and item.tag for item in items)


# -- its proof: each loss that could be is found ----------------------------------------------------------------------

ITEMS = [Item("t", f"key-{n}", "red" if n % 2 else "blue", f"body {n}".encode()) for n in range(6)]


def stored(ledger: DemoLedger) -> list[Record]:
    """What an honest store gives back, with everything acknowledged."""
    records = []
    for number, entry in enumerate(ledger.entries):
        item = entry.item
        properties = encode({"UNIQ_KEY": entry.unique_key, "TAGS": item.tag, "KEYS": item.key})
        message = Message("t", 0, item.body, properties, store_host=Host("127.0.0.1", 1))
        records.append(decode_record(encode_record(message, number, 1000 * number, 1)))
        ledger.acknowledge(entry.unique_key, ReceiptPlace(0, number, 1000 * number, "id"))
    return records


def test_an_honest_store_passes() -> None:
    ledger = DemoLedger(ITEMS)
    records, proof = stored(ledger), Proof(ledger)
    assert proof.of_everything(records) == 6
    assert proof.of_filter(records[1::2], "t", ["red"]) == 3
    assert stored_twice(records) == 0
    assert proof.losses == []


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        (lambda records: records[:-1], "not there"),
        (lambda records: records[:2] + records[3:], "not there"),
        (lambda records: [records[1], *records[1:]], "not there"),
    ],
)
def test_a_missing_message_is_found(damage: Any, said: str) -> None:
    ledger = DemoLedger(ITEMS)
    proof = Proof(ledger)
    assert proof.of_everything(damage(stored(ledger))) == 5
    assert said in proof.losses[0]


def test_a_hole_between_messages_is_found() -> None:
    ledger = DemoLedger(ITEMS)
    records, proof = stored(ledger), Proof(ledger)
    del ledger.places[ledger.entries[2].unique_key]
    proof.of_everything(records[:2] + records[3:])
    assert proof.losses == ["queue 0 of t has holes in its offsets"]


def test_changed_bytes_are_found() -> None:
    ledger = DemoLedger(ITEMS)
    records, proof = stored(ledger), Proof(ledger)
    raw = bytearray(records[3].encode())
    raw[raw.index(b"body 3")] ^= 1
    records[3] = decode_record(bytes(raw), verify=False)
    assert proof.of_everything(records) == 5
    assert proof.losses == ["key-3: its 6 bytes came back different"]


def test_another_message_in_the_place_is_found() -> None:
    ledger = DemoLedger(ITEMS)
    records, proof = stored(ledger), Proof(ledger)
    first, second = ledger.entries[0].unique_key, ledger.entries[1].unique_key
    ledger.places[first], ledger.places[second] = ledger.places[second], ledger.places[first]
    assert proof.of_everything(records) == 4
    assert "another message lies at queue 0 offset 1" in proof.losses[0]


def test_a_filter_that_leaves_out_or_lets_through_is_found() -> None:
    ledger = DemoLedger(ITEMS)
    records, proof = stored(ledger), Proof(ledger)
    assert proof.of_filter(records[3::2], "t", ["red"]) == 2
    assert proof.of_filter(records, "t", ["red"]) == 3
    assert len(proof.losses) == 1 + 3


def test_a_message_that_was_resent_is_counted() -> None:
    records = stored(DemoLedger(ITEMS))
    assert stored_twice([*records, records[0]]) == 1


def two_directories(tmp_path: Path, **files: tuple[bytes, bytes]) -> tuple[Path, Path]:
    for at, node in enumerate(("master", "slave")):
        (tmp_path / node / "t").mkdir(parents=True)
        for name, contents in files.items():
            if contents[at]:
                (tmp_path / node / "t" / name).write_bytes(contents[at])
    return tmp_path / "master", tmp_path / "slave"


def test_equal_files_pass_and_an_empty_one_may_be_missing(tmp_path: Path) -> None:
    proof = Proof(DemoLedger([]))
    assert proof.of_files(*two_directories(tmp_path, a=(b"one", b"one"), b=(b"two", b"two"), c=(bytes(9), b""))) == 2
    assert proof.losses == []


@pytest.mark.parametrize(
    ("contents", "said"),
    [
        ((b"equal then not", b"equal then NOT"), "differ from byte 11 on"),
        ((b"longer", b"long"), "differ from byte 4 on"),
        ((b"only here", b""), "master has t/a"),
        ((b"", b"only there"), "slave has t/a"),
    ],
)
def test_a_difference_between_the_nodes_is_found(contents: tuple[bytes, bytes], said: str, tmp_path: Path) -> None:
    proof = Proof(DemoLedger([]))
    proof.of_files(*two_directories(tmp_path, a=contents))
    assert len(proof.losses) == 1
    assert said in proof.losses[0]


def test_a_difference_behind_the_first_megabyte_is_found(tmp_path: Path) -> None:
    one, other = tmp_path / "one", tmp_path / "other"
    one.write_bytes(bytes(3 << 20))
    other.write_bytes(bytes(2 << 20) + b"\1" + bytes((1 << 20) - 1))
    assert first_difference(one, other) == 2 << 20
    assert first_difference(one, one) is None
    assert is_empty(one)
    assert not is_empty(other)


# -- its verdict ------------------------------------------------------------------------------------------------------


@pytest.mark.serial
def test_a_promise_that_is_not_kept_fails_the_demo(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(steps, "MEMORY_MAX", 1)
    monkeypatch.setattr(steps, "SINGLES", 10)
    monkeypatch.setattr(steps, "BATCHED", 90)
    one = Demo(tmp_path / "data", Teller(Output(as_json=True)), messages=3_100)
    assert one.run() is False
    verdict = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert verdict["verdict"] == "failed"
    assert verdict["acknowledged"] == 3_100
    assert len(verdict["losses"]) == 1
    assert verdict["losses"][0].startswith("a new store takes ")


def test_losses_in_words(capsys: pytest.CaptureFixture[str]) -> None:
    teller = Teller(Output(as_json=False))
    teller.verdict(False, "unused", ["bash: its 5 bytes came back different"], seconds=1, acknowledged=1)
    assert capsys.readouterr().out == "\nFailed:\n  bash: its 5 bytes came back different\n"
