"""Who has what, and what a synchronous send may count on: identities, needed acks, in sync or not, messages."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tandemmq.replicator.master.lag import GrowthHistory
from tandemmq.replicator.master.replicas import ProgressTeller, ReplicaProgress, ReplicaRules, Replicas
from tandemmq.replicator.master.transfer import Transfer, TransferRules

GAP = 1_000


class Table:
    """Replicas with transfers that a test moves by hand."""

    def __init__(self, end: int = 0, rules: ReplicaRules | None = None) -> None:
        self.replicas = Replicas(replace(rules or ReplicaRules(), max_gap=GAP))
        self.replicas.log_grew(end, 0.0)
        self.transfers: dict[int, Transfer] = {}

    def join(self, connection: int, identity: str, acked: int, now: float = 0.0) -> bool:
        transfer = self.transfers[connection] = Transfer(TransferRules(), now)
        transfer.begun = True
        transfer.acked_offset = transfer.next_offset = acked
        return self.replicas.joined(connection, transfer, identity, f"10.0.0.1:{connection}", now)

    def ack(self, connection: int, offset: int, now: float = 0.0) -> bool:
        transfer = self.transfers[connection]
        transfer.acked_offset = offset
        transfer.next_offset = max(transfer.next_offset, offset)
        return self.replicas.acked(connection, now)

    @property
    def progress(self) -> ReplicaProgress:
        return self.replicas.progress


def test_nobody_is_not_enough() -> None:
    assert Table(100).progress == ReplicaProgress(False, 0, 0)


def test_the_ack_of_the_best_of_the_needed_counts() -> None:
    table = Table(500)
    assert table.join(1, "a", 100)
    assert table.progress == ReplicaProgress(True, 100, 1)
    assert table.join(2, "b", 300)
    assert table.progress == ReplicaProgress(True, 300, 2)
    assert table.ack(1, 400)
    assert table.progress == ReplicaProgress(True, 400, 2)
    assert not table.ack(2, 350)


def test_three_replicas_need_two_acks() -> None:
    table = Table(500, ReplicaRules(in_sync_replicas=3))
    table.join(1, "a", 400)
    assert table.progress == ReplicaProgress(False, 0, 1)
    table.join(2, "b", 300)
    assert table.progress == ReplicaProgress(True, 300, 2)
    table.join(3, "c", 350)
    assert table.progress == ReplicaProgress(True, 350, 3)


def test_one_replica_in_sync_means_waiting_for_nobody() -> None:
    table = Table(500, ReplicaRules(in_sync_replicas=1))
    assert table.progress == ReplicaProgress(True, 500, 0)
    assert table.replicas.log_grew(600, 0.0)
    assert table.progress == ReplicaProgress(True, 600, 0)


def test_connections_of_one_identity_count_once_with_the_best_ack() -> None:
    table = Table(500, ReplicaRules(in_sync_replicas=3))
    table.join(1, "a", 400)
    table.join(2, "a", 200)
    assert table.progress == ReplicaProgress(False, 0, 1)
    table.join(3, "b", 100)
    assert table.progress.replicated_offset == 100
    table.ack(3, 450)
    assert table.progress.replicated_offset == 400
    table.replicas.left(1, 0.0)
    assert table.progress.replicated_offset == 200


def test_what_leaves_no_longer_counts() -> None:
    table = Table(500)
    table.join(1, "a", 400)
    assert table.replicas.left(1, 0.0)
    assert table.progress == ReplicaProgress(False, 0, 0)
    assert not table.replicas.left(1, 0.0)
    assert not table.replicas.left(99, 0.0)


def test_an_introduction_after_the_first_report_renames() -> None:
    table = Table(500)
    table.join(1, "10.0.0.1", 400)
    table.replicas.joined(1, table.transfers[1], "2", "10.0.0.1:1", 0.0)
    assert {one.identity for one in table.replicas if one.connected} == {"2"}
    assert table.progress == ReplicaProgress(True, 400, 1)


def test_a_replica_that_is_far_behind_is_not_in_sync_but_connected() -> None:
    table = Table(GAP)
    table.join(1, "a", 0)
    assert table.progress == ReplicaProgress(True, 0, 0)
    table.ack(1, 1)
    assert table.progress == ReplicaProgress(True, 1, 1)
    assert not table.replicas.log_grew(GAP, 0.0)
    assert table.replicas.log_grew(GAP + 1, 0.0)
    assert table.progress == ReplicaProgress(True, 1, 0)


def test_all_in_sync_must_ack_if_so_told() -> None:
    table = Table(5_000, ReplicaRules(all_ack=True))
    assert table.progress == ReplicaProgress(True, 5_000, 0)
    table.join(1, "a", 4_900)
    table.join(2, "b", 4_500)
    assert table.progress == ReplicaProgress(True, 4_500, 2)
    table.join(3, "far", 100)
    assert table.progress == ReplicaProgress(True, 4_500, 2)


@pytest.mark.parametrize(
    ("in_sync", "needed"),
    [(0, 1), (1, 1), (2, 2), (3, 3), (9, 3)],
)
def test_automatic_needs_follow_who_is_in_sync(in_sync: int, needed: int) -> None:
    rules = ReplicaRules(in_sync_replicas=4, min_in_sync_replicas=2, auto=True)
    assert rules.needed(in_sync) == needed


def test_acks_never_count_beyond_the_log() -> None:
    table = Table(500)
    table.join(1, "a", 400)
    table.replicas.log_grew(300, 1.0)
    assert table.progress.replicated_offset == 300


@given(
    st.integers(1, 4),
    st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3), st.integers(0, 400)), max_size=25),
)
def test_progress_is_what_the_definition_says(needed: int, events: list[tuple[int, int, int]]) -> None:
    table = Table(400, ReplicaRules(in_sync_replicas=needed))
    best: dict[int, dict[int, int]] = {}
    for connection, identity, offset in events:
        if connection in table.transfers:
            table.replicas.left(connection, 0.0)
            del table.transfers[connection]
            for acks in best.values():
                acks.pop(connection, None)
        else:
            table.join(connection, str(identity), offset)
            best.setdefault(identity, {})[connection] = offset
        highest = sorted((max(one.values()) for one in best.values() if one), reverse=True)
        if needed == 1:
            expected = ReplicaProgress(True, 400, len(highest))
        elif len(highest) >= needed - 1:
            expected = ReplicaProgress(True, highest[needed - 2], len(highest))
        else:
            expected = ReplicaProgress(False, 0, len(highest))
        assert table.progress == expected


# -- lag ---------------------------------------------------------------------------------------------------------------


def test_lag_is_the_age_of_the_oldest_byte_that_is_missing() -> None:
    table = Table(0)
    table.join(1, "a", 0)
    for second in range(1, 11):
        table.replicas.log_grew(second * 100, float(second))
    table.ack(1, 450, 10.0)
    replica = next(iter(table.replicas))
    assert table.replicas.lag_bytes(replica) == 550
    assert table.replicas.lag_seconds(replica, 10.5) == 5.5
    table.ack(1, 1_000, 11.0)
    assert table.replicas.lag_seconds(replica, 12.0) == 0.0


@given(st.lists(st.tuples(st.integers(1, 50), st.floats(0.001, 0.5)), min_size=1, max_size=400), st.data())
def test_growth_history_is_exact_to_its_resolution(steps: list[tuple[int, float]], data: st.DataObject) -> None:
    history, end, now, truth = GrowthHistory(), 0, 0.0, []
    for grown, passed in steps:
        end, now = end + grown, now + passed
        history.grew(end, now)
        truth.append((end, now))
    offset = data.draw(st.integers(0, end))
    since = next((time for reached, time in truth if reached > offset), None)
    expected = 0.0 if since is None else now - since
    assert history.age(offset, now) == pytest.approx(expected, abs=0.021)


def test_growth_history_stays_small() -> None:
    history = GrowthHistory()
    for at in range(30_000):
        history.grew(at + 1, at * 0.1)
    assert len(history._ends) <= 4_096
    assert history.age(29_999 - 100, 2_999.9) == pytest.approx(10.0, abs=0.1)
    assert history.age(15_000, 2_999.9) == pytest.approx(1_500, rel=0.2)


# -- messages ----------------------------------------------------------------------------------------------------------


def test_messages_say_what_is_new_and_list_replicas_when_that_is_new_or_old() -> None:
    table = Table(500)
    teller = ProgressTeller(table.replicas)
    first = teller.message(0.0)
    assert first is not None
    assert not first.enough
    table.join(1, "a", 400)
    second = teller.message(0.1)
    assert second is not None
    assert [one.identity for one in second.replicas] == ["a"]
    assert teller.message(0.2) is None
    table.ack(1, 450)
    third = teller.message(0.3)
    assert third is not None
    assert (third.replicated_offset, len(third.replicas)) == (450, 0)
    again = teller.message(1.2)
    assert again is not None
    assert [one.acked_offset for one in again.replicas] == [450]


def test_a_new_link_is_told_everything() -> None:
    table = Table(500)
    teller = ProgressTeller(table.replicas)
    table.join(1, "a", 400)
    assert teller.message(0.0) is not None
    assert teller.message(0.0) is None
    teller.begin()
    again = teller.message(0.0)
    assert again is not None
    assert len(again.replicas) == 1


def test_replicas_that_left_are_remembered_for_an_hour() -> None:
    table = Table(500)
    table.join(1, "a", 400)
    table.replicas.left(1, 10.0)
    assert [one.identity for one in table.replicas] == ["a"]
    table.join(2, "b", 400, 10.0 + 3_601)
    assert [one.identity for one in table.replicas] == ["b"]


def silence(table: Table, now: float) -> float:
    (replica,) = table.replicas
    return table.replicas.silent_seconds(replica, now)


def test_a_slave_with_everything_is_silent_when_two_of_its_reports_are_missing() -> None:
    table = Table(100)
    table.join(1, "a", 100, now=10.0)
    assert silence(table, 19.9) == 0, "one of RocketMQ reports every five seconds"
    assert silence(table, 20.5) == 10.5
    table.transfers[1].report_seconds = 1.0
    assert silence(table, 11.9) == 0
    assert silence(table, 12.5) == 2.5
    table.transfers[1].heard(12.6)
    assert silence(table, 12.7) == 0, "it has said again what it has"


def test_a_slave_is_silent_when_it_has_not_acked_for_two_seconds_what_it_lacks() -> None:
    table = Table(100)
    table.join(1, "a", 100, now=10.0)
    table.replicas.log_grew(200, 60.0)
    for now in (60.0, 62.0, 64.0):
        table.transfers[1].heard(now)
    assert silence(table, 61.9) == 0, "it had everything until a moment ago"
    assert silence(table, 64.0) == 4.0
    table.ack(1, 200, now=64.5)
    assert silence(table, 64.6) == 0


def test_a_slave_that_is_gone_is_not_silent() -> None:
    table = Table(100)
    table.join(1, "a", 50, now=10.0)
    table.replicas.left(1, 11.0)
    assert silence(table, 100.0) == 0


def test_the_metrics_thread_may_look_while_a_connection_of_the_same_slave_comes() -> None:
    table = Table(100)

    class Meanwhile(Transfer):
        @property
        def heard_at(self) -> float:
            if 2 not in table.transfers:
                table.join(2, "a", 100, now=12.0)
            return 11.0

    transfer = Meanwhile(TransferRules(), 10.0)
    transfer.begun = True
    table.replicas.joined(1, transfer, "a", "10.0.0.1:1", 10.0)
    (replica,) = table.replicas
    assert replica.heard_at == 11.0
    assert replica.heard_at == 12.0
