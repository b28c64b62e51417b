"""A pair whose replicators know each other by certificates: everything goes on as without, and nobody else gets in."""

import random
from pathlib import Path

import grpc
import pytest

from tests.faults.harness import SEED
from tests.faults.hostile import ATTACKS, REPORT, dial, drain
from tests.faults.pair import Pair
from tests.faults.pair_checks import assert_logs_equal, missing_on
from tests.faults.pair_load import load
from tests.faults.pair_process import until
from tests.integration.replicator.test_master_tls import make_certificate

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

FILE_SIZE = 128 * 1024


def test_a_pair_with_mutual_tls(tmp_path: Path) -> None:
    made = make_certificate(tmp_path, "node")
    settings = {
        "haTlsEnable": "true",
        "tlsServerCertPath": made.certificate,
        "tlsServerKeyPath": made.key,
        "tlsServerTrustCertPath": made.certificate,
        "haTlsTrustCertPath": made.certificate,
    }
    pair = Pair(tmp_path / "pair", replicator=settings)
    for node in pair.nodes:
        node.credentials = grpc.ssl_channel_credentials(
            made.certificate.read_bytes(), made.key.read_bytes(), made.certificate.read_bytes()
        )
    with pair:
        with load(pair.master.address("store"), pair.slave.root, FILE_SIZE, SEED, producers=2) as ledger:
            until(lambda: len(ledger.of()) > 200, 60, pair.describe)
            for attack in ATTACKS:
                attack(pair.master.ha_address, random.Random(SEED))
            with dial(pair.master.ha_address) as plain:
                plain.sendall(REPORT.pack(0))
                assert drain(plain, 1) < 100, "log bytes in the clear"
            for process in (pair.slave.replicator, pair.master.replicator):
                process.kill()
                process.start()
                told = len(ledger.of())
                until(lambda: len(ledger.of()) > told + 100, 60, pair.describe)  # noqa: B023
        pair.heal()
        assert_logs_equal(pair.master.root, pair.slave.root, pair.master.role().max_offset, begin=0)
        assert not missing_on(pair.slave.root, FILE_SIZE, ledger.of())
        status = pair.master.status()
        assert status is not None
        assert [replica.identity for replica in status.replicas if replica.connected] == ["1"]
