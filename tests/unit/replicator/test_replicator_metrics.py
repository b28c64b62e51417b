"""What the replicator tells Prometheus: every name, in base units, with its labels."""

from prometheus_client import generate_latest

from tandemmq.replicator.metrics import MasterNow, Now, ReplicaNow, ReplicatorMetrics, SlaveNow
from tandemmq.replicator.slave.slave_connection import FollowerCounters


def scraped(metrics: ReplicatorMetrics) -> str:
    return generate_latest(metrics.registry()).decode()


def test_a_master() -> None:
    metrics = ReplicatorMetrics("c", "n")
    metrics.bytes_sent = 5
    metrics.closed("ahead")
    replica = ReplicaNow("1", True, False, 77, 1.5, 0.25, 2.5)
    metrics.watch(lambda: Now(True, True, "SYNC_MASTER", MasterNow([replica], 3, 0, True), None))
    text = scraped(metrics)
    common = 'cluster="c",node_id="n",node_type="replicator"'
    assert f"tandem_ha_sent_bytes_total{{{common}}} 5.0" in text
    assert f'tandem_ha_connections_closed_total{{{common},reason="ahead"}} 1.0' in text
    assert f'tandem_replica_lag_bytes{{{common},replica="1"}} 77.0' in text
    assert f'tandem_replica_lag_seconds{{{common},replica="1"}} 1.5' in text
    assert f'tandem_replica_ack_age_seconds{{{common},replica="1"}} 0.25' in text
    assert f'tandem_replica_silent_seconds{{{common},replica="1"}} 2.5' in text
    assert f'tandem_replicator_role{{{common},role="SYNC_MASTER"}} 1.0' in text
    assert f"tandem_ha_connections{{{common}}} 3.0" in text
    assert "tandem_follower" not in text


def test_a_slave() -> None:
    metrics = ReplicatorMetrics("c", "n")
    metrics.follower = FollowerCounters(received_bytes=9, ends={"fork": 2})
    metrics.watch(lambda: Now(False, False, "SLAVE", None, SlaveNow("refused", 4, 2, 0.5)))
    text = scraped(metrics)
    assert 'reason="fork"} 2.0' in text
    assert 'reason="ahead"} 0.0' in text, "counters begin at 0, so that the first end is an increase"
    assert 'state="refused"} 1.0' in text
    assert 'state="following"} 0.0' in text
    for name, value in (("follower_lag_bytes", "4.0"), ("follower_silent_seconds", "0.5"), ("store_linked", "0.0")):
        line = next(line for line in text.splitlines() if line.startswith(f"tandem_{name}{{"))
        assert line.endswith(value)
    assert "tandem_replica_lag_bytes" not in text


def test_before_anything_is_known() -> None:
    assert "tandem_ha_frames_sent_total" in scraped(ReplicatorMetrics("c", "n"))
