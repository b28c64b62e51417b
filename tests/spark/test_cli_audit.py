"""`tandem audit` as a person or a script runs it: words, JSON, the page, exit codes; on a store that runs, too."""

import json
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tandemmq.client import Outgoing, StoreClient
from tests.contract.store_process import StoreProcess
from tests.golden import golden_store
from tests.spark.streams import Load

pytestmark = pytest.mark.timeout(900)


def tandem(*arguments: object) -> "subprocess.CompletedProcess[str]":
    done = subprocess.run(
        [sys.executable, "-m", "tandemmq.cli.main", "audit", *map(str, arguments)],
        stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=400, check=False,
    )  # fmt: skip
    assert "Traceback" not in done.stderr
    return done


def document(*arguments: object) -> Any:
    done = tandem(*arguments, "--json")
    assert done.stderr == ""
    found = json.loads(done.stdout)
    assert done.returncode == bool(found["faults"])
    return found


@pytest.mark.slow
@pytest.mark.golden
def test_a_sound_store_in_words() -> None:
    told = tandem(golden_store("clean") / "store")
    assert (told.returncode, told.stderr.splitlines()[0][:16]) == (0, "looking at the i")
    assert "7,064 records" in told.stdout
    assert "No faults" in told.stdout


@pytest.mark.slow
@pytest.mark.golden
def test_progress_for_programs() -> None:
    told = tandem(golden_store("clean") / "store", "--json", "--progress")
    assert json.loads(told.stdout)["faults"] == 0
    lines = [json.loads(line) for line in told.stderr.splitlines()]
    assert {one["phase"]: one["text"] for one in lines} == {
        "index": "looking at the index", "scan": "reading the log", "rest": "looking at the queues",
    }  # fmt: skip
    assert all(0 <= one["done_bytes"] <= one["total_bytes"] for one in lines)
    assert lines[-1]["done_bytes"] == lines[-1]["total_bytes"]


@pytest.mark.golden
def test_faults_in_words_and_as_json(tmp_path: Path) -> None:
    root = golden_store("torn") / "cq-topic-deleted" / "store-after-java-recovery"
    told = tandem(root, "--html", tmp_path / "report.html", "--details", 3)
    assert told.returncode == 1
    assert "1,821  fault  missing index entries" in told.stdout
    assert "trap T5" in told.stdout
    assert "382 at billing_out queue 0 offsets 0 to 381" in told.stdout
    assert "2,555 faults of 2 kinds" in (tmp_path / "report.html").read_text()
    found = document(root, "--set", "messageDelayLevel=1s 2s 3s 1h")
    assert found["faults"] == 2_555
    assert found["delivery_times_compared"]
    blanks = next(one for one in found["findings"] if one["kind"] == "unit-blank")
    assert (blanks["count"], blanks["fault"], blanks["trap"]) == (734, True, "T5")
    first = blanks["places"][0]
    assert (first["topic"], first["queue_id"], first["queue_offset"], first["count"]) == ("billing_out", 0, 0, 382)
    assert document(root, "--topic", "GeoPing", "--no-index")["faults"] == 0


@pytest.mark.golden
@pytest.mark.slow
def test_on_spark() -> None:
    pytest.importorskip("pyspark", reason="PySpark is not installed: the extra `spark`")
    root = golden_store("torn") / "body-flip-old" / "store"
    here, there = (document(root, *how, "--partitions", 5) for how in ([], ["--master", "local[2,4]"]))
    for one in (here, there):
        del one["seconds"], one["phases"]
    assert here == there
    assert here["faults"] == 2


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["nowhere"], 1, "tandem: nowhere holds no commit log"),
        (["store", "--running", "127.0.0.1:1"], 1, "127.0.0.1:1"),
        (["store", "--running", "127.0.0.1:1", "--set", "a=b"], 2, "a running store says itself"),
        (["store", "--html", "no/such/report.html"], 1, "no/such/report.html"),
        (["store/commitlog"], 2, "log files themselves"),
        (["store", "--partitions", "0"], 2, "--partitions"),
    ],
)
def test_mistakes_are_told_in_a_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], code: int, words: str
) -> None:
    shutil.copytree(golden_store("clean") / "store", tmp_path / "store")
    monkeypatch.chdir(tmp_path)
    told = tandem(*arguments)
    assert (told.returncode, told.stdout) == (code, "")
    assert words in " ".join(told.stderr.split())


@pytest.mark.slow
def test_a_store_that_takes_messages(tmp_path: Path) -> None:
    """Compared up to where its dispatch is: nothing is missing, whatever comes meanwhile."""
    with StoreProcess(tmp_path / "store") as store:
        load = Load(store.address, "orders")
        load.start()
        end = 0
        try:
            for _ in range(4):
                load.wait(1)
                found = document(store.directory, "--running", store.address)
                assert (found["live"], found["faults"]) == (True, 0), found["findings"]
                assert found["delivery_times_compared"]
                assert found["end_offset"] > end
                end = found["end_offset"]
            load.wait(1)
        finally:
            load.stop()
        with StoreClient(store.address) as client:
            assert client.log().dispatched_offset > end
        told = tandem(store.directory)
        assert told.returncode == 0, told.stdout
        assert "in use; compared up to" in told.stdout
        queue = sorted((store.directory / "consumequeue" / "orders" / "0").iterdir())[0]
        with queue.open("r+b") as file:
            file.write(bytes(20))
        assert document(store.directory, "--running", store.address)["findings"][0]["kind"] == "unit-missing"
        other = tandem(golden_store("clean") / "store", "--running", store.address)
        assert other.returncode == 2
        assert "has its files in" in other.stderr


@pytest.mark.slow
def test_a_store_that_was_killed(tmp_path: Path) -> None:
    """What its next start adds is told as missing, and that it was not closed."""
    with StoreProcess(tmp_path / "store") as store:
        with StoreClient(store.address) as client:
            client.send_encoded([Outgoing("orders", b"%d" % number) for number in range(500)])
        store.stop(signal.SIGKILL)
        found = document(store.directory)
        assert {one["kind"] for one in found["findings"] if not one["fault"]} == {"not-closed"}
        assert found["records"] == 500
        store.start()
        assert document(store.directory, "--running", store.address)["faults"] == 0


@pytest.mark.slow
def test_the_store_shows_what_the_last_audit_found(tmp_path: Path) -> None:
    """Also after a restart; an audit of a part ends no alert, and one of a directory that cannot be written goes on."""

    def shown() -> dict[str, float]:
        lines = [line for line in store.scrape() if line.startswith("tandem_audit_findings{")]
        faults = [line for line in lines if 'fault="true"' in line]
        return {line.split('kind="')[1].split('"')[0]: float(line.split()[-1]) for line in faults}

    with StoreProcess(tmp_path / "store") as store:
        with StoreClient(store.address) as client:
            client.send_encoded([Outgoing("orders", b"%d" % number) for number in range(100)])
        store.restart()
        assert not [line for line in store.scrape() if line.startswith("tandem_audit_timestamp_seconds{")]
        assert document(store.directory, "--running", store.address)["kept"]
        assert [line for line in store.scrape() if line.startswith("tandem_audit_timestamp_seconds{")]
        assert shown() == {}
        queue = next((store.directory / "consumequeue" / "orders" / "0").iterdir())
        sound = queue.read_bytes()
        with queue.open("r+b") as file:
            file.write(bytes(20))
        assert document(store.directory, "--running", store.address)["kept"]
        assert shown() == {"unit-missing": 1}
        store.restart(signal.SIGKILL)
        assert shown() == {"unit-missing": 1}
        queue.write_bytes(sound)
        assert not document(store.directory, "--running", store.address, "--no-index")["kept"]
        assert shown() == {"unit-missing": 1}
        result = store.directory / "tandem.audit"
        result.rename(tmp_path / "aside")
        result.mkdir()
        told = tandem(store.directory, "--running", store.address)
        assert told.returncode == 0, told.stderr
        assert "The result is not kept for the store's metrics: Is a directory" in told.stderr
        assert any(line.startswith("tandem_unusable_files{") and "tandem.audit" in line for line in store.scrape())
        assert not (store.directory / "tandem.audit.tmp").exists()
        result.rmdir()
        assert document(store.directory, "--running", store.address)["kept"]
        assert shown() == {}


@pytest.mark.slow
def test_a_rocketmq_store_stays_as_it_is(tmp_path: Path) -> None:
    store = shutil.copytree(golden_store("clean") / "store", tmp_path / "store")
    before = sorted(store.rglob("*"))
    assert not document(store)["kept"]
    assert sorted(store.rglob("*")) == before
