"""A rebuild that was killed goes on with what is done: at every document it writes, with more or fewer cores after."""

import shutil
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from tandemmq.spark.rebuilding import rebuild_job
from tandemmq.spark.rebuilding import staging as staging_module
from tandemmq.spark.rebuilding.rebuild_job import RebuildReport, rebuild
from tandemmq.spark.rebuilding.staging import StagingDirectory
from tandemmq.store.format.record import Message, encode_record
from tests.campaigns import in_campaigns, rows_in_campaigns
from tests.spark.kit import Files, by_log_code, files_of
from tests.unit.format.logs import V4, props
from tests.unit.spark.small_store import NOW, SIZES, Cores, Killed, Steps, write_log


@pytest.fixture
def root(scratch: Path) -> Path:
    """A store with nothing but its log."""
    shutil.rmtree(scratch / "store", ignore_errors=True)
    write_log(scratch / "store")
    return scratch / "store"


@pytest.fixture
def want(root: Path, tmp_path: Path) -> Files:
    """What the store's own code makes of it."""
    return by_log_code(root, tmp_path / "sequential", SIZES)


def attempt(root: Path, cores: int, partitions: int = 8) -> RebuildReport:
    """One rebuild, left staged."""
    return rebuild(SIZES.request(root, partitions=partitions), Cores(cores))


def killed_at(monkeypatch: pytest.MonkeyPatch, number: int, where: str, work: Callable[[], object]) -> bool:
    """Run ``work`` and end it at its ``number``-th document: ``before`` it is written, half ``way``, or ``after``."""
    written = 0
    write = StagingDirectory.write

    def writing(self: StagingDirectory, name: str, document: dict[str, object]) -> None:
        nonlocal written
        written += 1
        if written == number and where == "before":
            raise Killed
        if written == number and where == "way":
            path = self.path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.with_name(f"{path.name}.4711.tmp").write_bytes(b"half")
            raise Killed
        write(self, name, document)
        if written == number:
            raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(staging_module.StagingDirectory, "write", writing)
        try:
            work()
        except Killed:
            return True
    return False


@pytest.mark.slow
@pytest.mark.parametrize("where", ["before", "way", "after"])
@pytest.mark.parametrize(("cores", "cores_after"), [(1, 3), *rows_in_campaigns((1, 1), (8, 1))])
def test_a_kill_at_any_document(
    root: Path, want: Files, monkeypatch: pytest.MonkeyPatch, where: str, cores: int, cores_after: int
) -> None:
    place = root / "tandem.rebuild"
    for number in range(1, 100):
        shutil.rmtree(place, ignore_errors=True)
        if not killed_at(monkeypatch, number, where, lambda: attempt(root, cores)):
            assert number > 12  # so many documents there are at least
            return
        done = len(list(place.glob("scan/*.json")))
        report = attempt(root, cores_after, partitions=3)
        assert files_of(place).differences(want) == [], f"killed {where} document {number}"
        assert report.resumed_ranges == done == min(8, max(0, number - 2 + (where == "after")))
    raise AssertionError("it never ends")


@pytest.mark.parametrize("cores_after", [2, *in_campaigns(1, 5)])
def test_a_staged_rebuild_can_be_run_again(root: Path, want: Files, cores_after: int) -> None:
    attempt(root, 2)
    assert attempt(root, cores_after).resumed_ranges == 8
    assert files_of(root / "tandem.rebuild").differences(want) == []
    assert attempt(root, 1, partitions=1).resumed_ranges == 8
    assert files_of(root / "tandem.rebuild").differences(want) == []


def test_a_kill_while_the_work_of_another_request_is_removed(
    root: Path, want: Files, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first request comes again, and must not go on with what is half removed."""
    for number in range(1, 8):
        attempt(root, 2)
        with monkeypatch.context() as patch:
            steps = Steps(patch, number, behind=True)
            steps.watch(shutil, "rmtree")
            with suppress(Killed):
                rebuild(SIZES.request(root, topics=("Late",), index=False), Cores(2))
        attempt(root, 2)
        assert files_of(root / "tandem.rebuild").differences(want) == [], number


def test_a_log_that_has_grown_between_two_attempts(root: Path, scratch: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing of the first is used."""
    killed_at(monkeypatch, 5, "after", lambda: attempt(root, 2))
    assert (root / "tandem.rebuild" / "scan").is_dir()
    last = sorted((root / "commitlog").iterdir())[-1]
    data = bytearray(last.read_bytes())
    at = data.rstrip(b"\0").rfind(b"\x02") + 1
    message = Message("Plain", 0, b"new", props(KEYS="new"), born_host=V4, store_host=V4)
    record = encode_record(message, 50, int(last.name) + at, NOW + 100_000)
    data[at : at + len(record)] = record
    last.write_bytes(data)
    report = attempt(root, 2)
    assert (report.messages, report.resumed_ranges) == (201, 0)
    shutil.rmtree(scratch / "again", ignore_errors=True)
    want = by_log_code(root, scratch / "again", SIZES)
    assert files_of(root / "tandem.rebuild").differences(want) == []


def test_nothing_is_gone_on_with_after_a_power_cut(root: Path, want: Files, monkeypatch: pytest.MonkeyPatch) -> None:
    """Documents are synced, spills and units are not before they are checked: the machine may have lost them."""
    killed_at(monkeypatch, 8, "after", lambda: attempt(root, 2))
    for spill in (root / "tandem.rebuild" / "keys").iterdir():
        spill.write_bytes(bytes(spill.stat().st_size))
    monkeypatch.setattr(rebuild_job, "boot_id", lambda: b"another boot, ok")
    assert attempt(root, 2).resumed_ranges == 0
    assert files_of(root / "tandem.rebuild").differences(want) == []


def test_a_store_that_was_moved_between_two_attempts(
    root: Path, want: Files, scratch: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The plan names files by their old paths; and a path may be relative to where the command was given."""
    killed_at(monkeypatch, 8, "after", lambda: attempt(root, 2))
    shutil.rmtree(scratch / "moved", ignore_errors=True)
    root.rename(scratch / "moved")
    monkeypatch.chdir(scratch)
    assert attempt(Path("moved"), 2).messages == 200
    assert files_of(scratch / "moved" / "tandem.rebuild").differences(want) == []
    monkeypatch.chdir("/")
    assert attempt(scratch / "moved", 2).resumed_ranges == 8
