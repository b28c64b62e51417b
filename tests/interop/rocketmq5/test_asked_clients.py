"""Official push consumers that operators ask for their threads, and to consume a message once more."""

import subprocess
import threading
from pathlib import Path

import grpc
import pytest

from tandemmq.delivery.v1 import operations_pb2
from tandemmq.delivery.v1.operations_pb2_grpc import OperationsStub
from tests.contract.store_process import StoreProcess
from tests.faults.pair_process import until
from tests.interop.grpc_clients.programs import command_of

pytestmark = [pytest.mark.interop, pytest.mark.slow, pytest.mark.timeout(600)]

SECONDS = 180
GROUP = "outage-group"
NO = "NOT_IMPLEMENTED"


@pytest.mark.parametrize(("language", "verified"), [("java", "OK"), ("go", NO), ("node", NO)])
def test_a_client_shows_its_threads_and_tries_a_message(tmp_path: Path, language: str, verified: str) -> None:
    with StoreProcess(tmp_path / "store", max_message_size=4 << 20) as store:
        command = [*command_of(f"rocketmq5-{language}"), store.address, "outage", "outage", GROUP]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as client:
            watchdog = threading.Timer(SECONDS, client.kill)
            watchdog.start()
            try:
                assert client.stdout is not None
                assert any(line.strip() == "SENT 3" for line in client.stdout), "it sends nothing"
                _ask(store, verified)
            finally:
                watchdog.cancel()
                client.kill()


def _ask(store: StoreProcess, verified: str) -> None:
    with grpc.insecure_channel(store.address) as channel, store.client() as native:
        operations = OperationsStub(channel)

        def consumers() -> list[str]:
            request = operations_pb2.ViewGroupsRequest(groups=[GROUP], with_members=True)
            found = operations.ViewGroups(request, timeout=60).groups
            return [one.client_id for group in found for one in group.members if not one.producer]

        until(lambda: bool(consumers()), 60, "the consumer is there")
        [client_id] = consumers()
        threads = operations_pb2.ShowThreadsRequest(group=GROUP, client_id=client_id)
        answer = operations.ShowThreads(threads, timeout=60)
        assert answer.code == "OK"
        assert answer.text
        sent = native.send("outage", b"one more")
        tried = operations_pb2.TryMessageRequest(group=GROUP, client_id=client_id, message_id=sent.message_id)
        assert operations.TryMessage(tried, timeout=60).code == verified
