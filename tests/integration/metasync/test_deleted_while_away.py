"""A group is deleted in the metadata service while the store is away; made again, it begins anew."""

import time
from pathlib import Path

import grpc
import pytest

from tandemmq.delivery.v1.delivery_pb2_grpc import DeliveryStub
from tandemmq.metadata.v1 import metadata_pb2 as pb
from tests.contract.store_process import StoreProcess
from tests.contract.test_delivery import acknowledge, bodies, receive_all
from tests.metasync_process import MetasyncProcess

ALL = [b"0", b"1", b"2"]


def consume(store: StoreProcess) -> list[bytes]:
    with grpc.insecure_channel(store.address) as channel:
        stub = DeliveryStub(channel)
        given = receive_all(stub, "workers", "orders", len(ALL))
        acknowledge(stub, "workers", "orders", *(one.handle for one in given))
        return sorted(bodies(given))


def wait_for(store: StoreProcess, event: str) -> None:
    deadline = time.monotonic() + 60
    while not any(one["event"] == event for one in store.events()):
        assert time.monotonic() < deadline, f"{event} was not said"
        time.sleep(0.05)


def groups(metasync: MetasyncProcess) -> set[str]:
    with metasync.stub() as stub:
        return {one.name for one in stub.ListGroups(pb.ListGroupsRequest(), timeout=60).groups}


@pytest.mark.slow
def test_it_begins_anew(tmp_path: Path) -> None:
    with MetasyncProcess(tmp_path / "metasync") as metasync:
        store = StoreProcess(tmp_path / "store", metasync_address=metasync.address)
        try:
            store.start()
            with store.client() as client:
                for body in ALL:
                    client.send("orders", body)
            assert consume(store) == ALL
            deadline = time.monotonic() + 60
            while "workers" not in groups(metasync):
                assert time.monotonic() < deadline
                time.sleep(0.05)
            assert store.stop() == 0
            with metasync.stub() as stub:
                stub.DeleteGroups(pb.DeleteGroupsRequest(names=["workers"]), timeout=60)
            store.start()
            wait_for(store, "deleted groups and topics are forgotten")
            assert consume(store) == ALL, "it is another group of that name"
        finally:
            store.stop()
