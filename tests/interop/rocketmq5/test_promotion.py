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


@pytest.mark.parametrize("language", ["python", "node", "go", "rust", "java"])
def test_a_client_goes_on_at_an_address_that_follows_the_master(tmp_path: Path, language: str) -> None:
    with Pair(tmp_path) as pair, Proxy(pair.master.address("store")) as address:
        pair.wait_level()
        survives(language, address.address, SECONDS, {"SENT 15": lambda: _promote(pair, address)})


LANGUAGES = ["python", "java"]
"""Those whose clients take a list of addresses, and have left a dead one within a minute."""


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_client_with_the_addresses_of_both_nodes_finds_the_master(tmp_path: Path, language: str) -> None:
    """It connects to the first, the slave, and is sent to the master; later the slave is promoted."""
    with Pair(tmp_path, store={"maxMessageSize": 4 << 20, "mappedFileSizeCommitLog": 64 << 20}) as pair:
        pair.wait_level()
        both = ";".join(node.address("store") for node in (pair.slave, pair.master))
        survives(language, both, SECONDS, {"SENT 15": lambda: _take_over(pair)})


def _take_over(pair: Pair) -> None:
    """The master dies, and its slave takes its place."""
    pair.wait_level()
    pair.master.kill()
    request = PromoteRequest(role=BrokerRole.ASYNC_MASTER, old_master_is_gone=True)
    pair.slave.replication().Promote(request, timeout=60)


def _promote(pair: Pair, address: Proxy) -> None:
    """The master dies, its slave takes its place, and its address."""
    pair.wait_level()
    promoted = pair.slave.address("store")
    pair.master.kill()
    request = PromoteRequest(role=BrokerRole.ASYNC_MASTER, old_master_is_gone=True)
    pair.slave.replication().Promote(request, timeout=60)
    address.target = promoted
    address.reset()
