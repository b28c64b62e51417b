"""Brokers of RocketMQ register at our name server, and are forgotten when they end."""

from pathlib import Path

import pytest

from tests.interop.rocketmq import ALONE, VERSIONS, RocketMQ, need_rocketmq
from tests.names_process import NamesProcess

pytestmark = [pytest.mark.interop, ALONE, pytest.mark.slow, pytest.mark.timeout(600)]


@pytest.mark.parametrize("version", VERSIONS)
def test_a_java_broker_registers_at_our_name_server(tmp_path: Path, version: str) -> None:
    need_rocketmq(version)
    with NamesProcess(tmp_path / "one") as one, NamesProcess(tmp_path / "two") as two:
        addresses = f"{one.address};{two.address}"
        broker = RocketMQ(version, tmp_path / "store", namesrvAddr=addresses, brokerName="java", brokerIP1="127.0.0.1")
        broker.start()
        try:
            expected = {"java": {"0": f"127.0.0.1:{broker.server.port}"}}
            for names in (one, two):
                names.until_route("TBW102", expected)
            with broker.connect() as remoting:
                topic = {"topic": "new", "defaultTopic": "TBW102", "readQueueNums": 3, "writeQueueNums": 3, "perm": 6}
                remoting.ask(17, {**topic, "topicFilterType": "SINGLE_TAG", "topicSysFlag": 0, "order": "false"})
            for names in (one, two):
                names.until_route("new", expected)
            broker.stop()
            for names in (one, two):
                names.until_route("TBW102", None, seconds=30)
            broker.start()
            one.until_route("new", expected)
            broker.kill()
            one.until_route("new", None, seconds=30)
        finally:
            broker.kill()
