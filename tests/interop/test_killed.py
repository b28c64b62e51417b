"""Killed with SIGKILL while messages are sent to it: RocketMQ recovers our store, and ours recovers RocketMQ's."""

import shutil
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from tandemmq.client import RequestFailed, StoreUnreachable
from tests.interop.messages import (
    Sent,
    Source,
    contents_at,
    found_at_rocketmq,
    own_keys,
    send_to_ours,
    send_to_rocketmq,
    viewed_by_id,
)
from tests.interop.ours import inspect, service
from tests.interop.rocketmq import ALONE, VERSIONS, RocketMQ, need_rocketmq

pytestmark = [pytest.mark.interop, ALONE, pytest.mark.slow, pytest.mark.timeout(900)]


def killed_while_sending(sending: Iterator[Sent], kill: Callable[[], object], least: int) -> list[Sent]:
    """Sends in a thread, kills the broker when so many are acknowledged; gives all that were."""
    acknowledged: list[Sent] = []

    def send() -> None:
        with suppress(OSError, RequestFailed, StoreUnreachable):  # how the end of the broker looks from here
            acknowledged.extend(sending)

    sender = threading.Thread(target=send)
    sender.start()
    deadline = time.monotonic() + 200
    while len(acknowledged) < least and sender.is_alive() and time.monotonic() < deadline:
        time.sleep(0.005)
    alive = sender.is_alive()
    kill()
    sender.join(100)
    assert alive, f"the broker ended too soon, at {len(acknowledged)} messages"
    assert len(acknowledged) >= least
    return acknowledged


@pytest.mark.parametrize("version", VERSIONS)
def test_each_recovers_what_the_other_left_behind(tmp_path: Path, version: str) -> None:
    need_rocketmq(version)
    root = tmp_path / "store"
    with service(root) as store, store.client() as client:
        sent = list(send_to_ours(client, Source(1), 500))
        assert store.stop() == 0
    with service(root) as store, store.client() as client:
        sent += killed_while_sending(
            send_to_ours(client, Source(2), 1_000_000), lambda: store.stop(signal.SIGKILL), 600
        )
    assert (root / "abort").exists()
    remove_unfinished(root)

    broker = RocketMQ(version, root)
    broker.start()
    try:
        with broker.connect() as remoting:
            queues = sorted({(one.topic, one.queue_id) for one in sent})
            found = contents_at(remoting, queues)
            found.be_whole()
            found.hold_all(sent)
            viewed_by_id(remoting, sent[::3])
            sent += killed_while_sending(send_to_rocketmq(remoting, Source(3), 1_000_000), broker.kill, 600)
    finally:
        broker.kill()
    assert (root / "abort").exists()

    copy = shutil.copytree(root, tmp_path / "copy")
    report, ours = inspect(root, sent)  # all of `sent`, by all their keys
    assert not report.clean_exit
    assert report.damage == [] or all(damage.kind == "torn" for damage in report.damage)
    ours.be_whole()

    remove_unfinished(copy)
    broker = RocketMQ(version, copy)
    broker.start()
    try:
        with broker.connect() as remoting:
            contents_at(remoting, list(ours.queues)).be_the_same_as(ours)
            sample = sent[::3]
            assert found_at_rocketmq(remoting, sample) <= own_keys(sample)  # ours found every one
    finally:
        broker.kill()


def remove_unfinished(root: Path) -> None:
    """Files that were being made when their broker was killed: RocketMQ refuses to start on them, even on its own.

    Ours end in `.tmp` (docs/rocketmq-compatibility.md); RocketMQ's are there, and empty. We start on either.
    """
    empty = {path for path in (root / "commitlog").iterdir() if not path.stat().st_size}
    for path in empty.union(root.rglob("*.tmp")):
        path.unlink()
