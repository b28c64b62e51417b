"""Without a gateway: an official client at an address that follows the master goes on when a slave is promoted."""

import subprocess
import threading
from pathlib import Path

import pytest

from tandemmq.replication.v1.replication_pb2 import PromoteRequest
from tandemmq.store.v1.replica_log_pb2 import BrokerRole
from tests.faults.pair import Pair
from tests.faults.proxy import Proxy
from tests.interop.grpc_clients.programs import command_of

pytestmark = [pytest.mark.interop, pytest.mark.slow, pytest.mark.timeout(600)]

SECONDS = 240


@pytest.mark.parametrize("language", ["python"])
def test_a_client_goes_on_at_an_address_that_follows_the_master(tmp_path: Path, language: str) -> None:
    with Pair(tmp_path) as pair, Proxy(pair.master.address("store")) as address:
        pair.wait_level()
        command = [*command_of(f"rocketmq5-{language}"), address.address, "outage", "outage", "outage-group"]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as client:
            watchdog = threading.Timer(SECONDS, client.kill)
            watchdog.start()
            try:
                said = []
                assert client.stdout is not None
                for line in client.stdout:
                    said.append(line.strip())
                    if said[-1] == "SENT 15":
                        pair.wait_level()
                        _promote(pair, address)
            finally:
                watchdog.cancel()
        assert said[-1:] == ["OK"], "\n".join(said)[-4_000:]


def _promote(pair: Pair, address: Proxy) -> None:
    """The master dies, its slave takes its place, and its address."""
    promoted = pair.slave.address("store")
    pair.master.kill()
    request = PromoteRequest(role=BrokerRole.ASYNC_MASTER, old_master_is_gone=True)
    pair.slave.replication().Promote(request, timeout=60)
    address.target = promoted
    address.reset()
