"""Transactions of a store process: over the contract, through stops and kills."""

import re
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager

import grpc
import pytest

from tandemmq.delivery.v1 import delivery_pb2
from tandemmq.delivery.v1.delivery_pb2_grpc import DeliveryStub
from tests.contract.refusals import statuses
from tests.contract.store_process import StoreProcess

COMMIT, ROLLBACK = delivery_pb2.COMMIT, delivery_pb2.ROLLBACK
HALF = {"TRAN_MSG": "true", "PGROUP": "g"}


@contextmanager
def delivery(store: StoreProcess) -> Iterator[DeliveryStub]:
    with grpc.insecure_channel(store.address) as channel:
        yield DeliveryStub(channel)


def end(stub: DeliveryStub, handle: str, ending: delivery_pb2.Ending.ValueType, group: str = "g") -> None:
    request = delivery_pb2.EndTransactionRequest(topic="t", handle=handle, ending=ending, group=group)
    for _ in range(600):
        try:
            stub.EndTransaction(request, timeout=60, wait_for_ready=True)
        except grpc.RpcError as error:
            if statuses(error)[0] != "UNAVAILABLE":  # after a start its journal and both topics are read first
                raise
            time.sleep(0.05)
        else:
            return


@contextmanager
def refused(code: str, words: str) -> Iterator[None]:
    with pytest.raises(grpc.RpcError, match=words) as raised:
        yield
    assert statuses(raised.value) == (code, "INVALID_TRANSACTION_ID")


def bodies(store: StoreProcess, topic: str = "t") -> list[bytes]:
    with store.client() as client:
        return sorted(one.body for queue in range(4) for one in client.pull(topic, queue, 0).records)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_transactions_survive(own_store: StoreProcess, number: signal.Signals) -> None:
    """What was ended stays so, what was not can be ended, and a repeat is known: after a stop, and after kill -9."""
    with own_store.client() as client:
        handles = [
            client.send("t", b"%d" % one, queue_id=one % 4, properties=HALF).transaction_handle for one in range(8)
        ]
    with delivery(own_store) as stub:
        for one in (0, 2, 5):
            end(stub, handles[one], COMMIT)
        end(stub, handles[1], ROLLBACK)
    own_store.restart(number)
    with delivery(own_store) as stub:
        end(stub, handles[0], COMMIT)
        with refused("FAILED_PRECONDITION", "as commit"):
            end(stub, handles[2], ROLLBACK)
        with refused("NOT_FOUND", "group other"):
            end(stub, handles[3], COMMIT, "other")
        end(stub, handles[3], COMMIT)
        for one in (4, 6, 7):
            end(stub, handles[one], ROLLBACK)
    own_store.restart(number)
    assert bodies(own_store) == [b"0", b"2", b"3", b"5"]
    with delivery(own_store) as stub, refused("FAILED_PRECONDITION", "as rollback"):
        end(stub, handles[7], COMMIT)
    assert "rocketmq_half_messages{" not in "\n".join(own_store.scrape())


@pytest.mark.slow
def test_metrics_of_transactions(own_store: StoreProcess) -> None:
    with own_store.client() as client, delivery(own_store) as stub:
        keys = [client.send("t", b"x", properties=HALF).unique_key for _ in range(4)]
        end(stub, keys[0], COMMIT)
        end(stub, keys[1], ROLLBACK)
    deadline = time.monotonic() + 60
    shown = re.compile(r"rocketmq_half_messages\{.* 2\.0")  # read every few seconds
    while not any(map(shown.match, lines := own_store.scrape())):
        assert time.monotonic() < deadline, "half messages are not shown"
        time.sleep(0.2)
    for name, value in (("half_messages", 2), ("commit_messages_total", 1), ("rollback_messages_total", 1)):
        (line,) = [one for one in lines if one.startswith(f"rocketmq_{name}{{")]
        assert 'topic="t"' in line
        assert float(line.split()[-1]) == value
