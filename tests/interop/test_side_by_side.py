"""RocketMQ started by mistake on a directory that our store is using, and on one whose log is damaged."""

from pathlib import Path

import pytest

from bench.model import Unavailable
from tests.interop.messages import Sent, Source, contents_at, send_to_ours, send_to_rocketmq
from tests.interop.ours import inspect, service
from tests.interop.rocketmq import ALONE, VERSIONS, RocketMQ, need_rocketmq

pytestmark = [pytest.mark.interop, ALONE, pytest.mark.slow, pytest.mark.timeout(900)]


def log_files(root: Path) -> dict[str, bytes]:
    """The log, file by file; without what its store is making just now, and will rename."""
    return {path.name: path.read_bytes() for path in sorted((root / "commitlog").iterdir()) if path.name.isdigit()}


@pytest.mark.parametrize("version", VERSIONS)
def test_rocketmq_started_on_a_directory_in_use_gives_up_and_nothing_is_lost(tmp_path: Path, version: str) -> None:
    """RocketMQ looks at the lock only after its own recovery, which deletes what it takes for unused (trap T2):
    the log file that was made ahead, and the newest index file. What is written afterwards must survive that.
    """
    need_rocketmq(version)
    root = tmp_path / "store"
    with service(root) as store, store.client() as client:
        sent = list(send_to_ours(client, Source(1), 300))
        before = log_files(root)
        broker = RocketMQ(version, root)
        with pytest.raises(Unavailable, match="ended at once"):
            broker.start()
        assert "Lock failed" in (broker.home / "interop.log").read_text()
        after = log_files(root)
        assert all(after[name] == before[name] for name in before if any(before[name]))
        sent += list(send_to_ours(client, Source(2), 400))  # over several log files
        assert store.stop() == 0
    report, contents = inspect(root, sent)
    assert report.clean_exit
    assert (report.cut_bytes, report.damage) == (0, [])
    contents.be_whole()


def rot(root: Path, sent: list[Sent]) -> Sent:
    """Turns a bit in the body of a message of the newest log file that has others behind it; gives that message."""
    path = max((root / "commitlog").iterdir())
    inside = sorted((one for one in sent if one.physical_offset >= int(path.name)), key=lambda one: one.physical_offset)
    assert len(inside) >= 3, "choose another seed: the newest file holds too little"
    victim = next(one for one in inside[1:-1] if len(one.body) > 20)
    data = bytearray(path.read_bytes())
    at = victim.physical_offset - int(path.name)
    data[data.index(victim.body, at) + 9] ^= 1
    path.write_bytes(data)
    return victim


@pytest.mark.parametrize("version", VERSIONS)
def test_a_log_that_rocketmq_has_cut_at_damage(tmp_path: Path, version: str) -> None:
    """We read around rot; RocketMQ cuts the log there and writes on. What it writes is not mistaken for the damage."""
    need_rocketmq(version)
    root = tmp_path / "store"
    with service(root) as store, store.client() as client:
        sent = list(send_to_ours(client, Source(5), 400))
        assert store.stop() == 0
    victim = rot(root, sent)
    with service(root, verify_whole_log_on_start=True) as store:
        assert store.stop() == 0
    assert (root / "tandem.damage").exists()
    report, contents = inspect(root, [one for one in sent if one is not victim])
    assert contents.count == len(sent) - 1

    (root / "broken").mkdir()
    (root / "broken" / "00000000000000000917.broken").write_bytes(b"what we once cut off")
    broker = RocketMQ(version, root)
    broker.start()
    try:
        with broker.connect() as remoting:
            kept = [one for one in sent if one.physical_offset < victim.physical_offset]
            theirs = contents_at(remoting, list(contents.queues))
            theirs.hold_all(kept)
            assert theirs.count == len(kept)
            kept += send_to_rocketmq(remoting, Source(6), 200)
            contents_at(remoting, list(contents.queues)).hold_all(kept)
    finally:
        broker.kill()
    report, contents = inspect(root, kept)
    contents.be_whole()
    assert not report.manifest_current
    assert victim.physical_offset in {one.physical_offset for one in kept}
