"""What the metrics of every service have: the version, the process."""

from importlib.metadata import version

from prometheus_client import generate_latest

from tandemmq.common.calling.followed_peer import FollowedPeer
from tandemmq.metasync.metrics import MetasyncMetrics
from tandemmq.replicator.metrics import ReplicatorMetrics
from tandemmq.store.metrics import StoreMetrics


def test_every_service_says_its_version_and_what_its_process_needs() -> None:
    for metrics in (StoreMetrics("c", "n"), ReplicatorMetrics("c", "n"), MetasyncMetrics("c", "n")):
        text = generate_latest(metrics.registry()).decode()
        (line,) = (line for line in text.splitlines() if line.startswith("tandem_build_info{"))
        assert f'version="{version("tandemmq")}"' in line
        assert 'cluster="c"' in line
        assert line.endswith(" 1.0")
        for name in ("process_resident_memory_bytes", "process_cpu_seconds_total", "process_open_fds",
                     "process_start_time_seconds", "python_gc_collections_total"):  # fmt: skip
            assert f"\n{name}" in text


def test_peers_are_there_or_away() -> None:
    metrics, store, names = MetasyncMetrics("c", "n"), FollowedPeer("store", "h:1"), FollowedPeer("name server", "h:2")
    metrics.watch_peers(store)
    metrics.watch_peers(names)
    store.came()
    names.gone("it does not answer")
    text = generate_latest(metrics.registry()).decode()
    found = [line.partition('peer="')[2] for line in text.splitlines() if line.startswith("tandem_peer_there{")]
    assert sorted(found) == ['name server"} 0.0', 'store"} 1.0']
