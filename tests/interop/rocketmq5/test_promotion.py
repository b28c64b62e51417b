"""Without a gateway: an official client at an address that follows the master goes on when a slave is promoted."""

from pathlib import Path

import pytest

from tandemmq.replication.v1.replication_pb2 import PromoteRequest
from tandemmq.store.v1.replica_log_pb2 import BrokerRole
from tests.faults.pair import Pair
from tests.faults.proxy import Proxy
from tests.interop.rocketmq5.outages import survives

pytestmark = [pytest.mark.interop, pytest.mark.slow, pytest.mark.timeout(600)]

SECONDS = 240


@pytest.mark.parametrize("language", ["python"])
def test_a_client_goes_on_at_an_address_that_follows_the_master(tmp_path: Path, language: str) -> None:
    with Pair(tmp_path) as pair, Proxy(pair.master.address("store")) as address:
        pair.wait_level()
        survives(language, address.address, SECONDS, {"SENT 15": lambda: _promote(pair, address)})


def _promote(pair: Pair, address: Proxy) -> None:
    """The master dies, its slave takes its place, and its address."""
    pair.wait_level()
    promoted = pair.slave.address("store")
    pair.master.kill()
    request = PromoteRequest(role=BrokerRole.ASYNC_MASTER, old_master_is_gone=True)
    pair.slave.replication().Promote(request, timeout=60)
    address.target = promoted
    address.reset()
