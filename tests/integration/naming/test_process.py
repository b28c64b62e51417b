"""A name server as a process: registrations that end with their connections, values that survive, several servers."""

import signal
import socket
import urllib.request
from pathlib import Path

import grpc
import pytest

from tandemmq.common.wire.remoting.codes import RequestCode, ResponseCode
from tandemmq.common.wire.remoting.registration import (
    BrokerIdentity,
    RegisteredTopic,
    Registration,
    RegistrationVersion,
)
from tandemmq.node.v1 import node_pb2
from tandemmq.node.v1.node_pb2_grpc import NodeStub
from tests.interop.remoting import Remoting
from tests.names_process import REGISTER_BROKER, NamesProcess

PUT_KV, GET_KV, UNREGISTER, UPDATE_CONFIG, GET_CONFIG = 100, 101, 104, 318, 319
NOT_SUPPORTED = 3


def register(remoting: Remoting, address: str = "h:1", broker_id: int = 0, name: str = "b") -> dict[str, str]:
    who = BrokerIdentity("C", name, broker_id, address)
    topics = {"T": RegisteredTopic("T", 4, 4, 6)}
    said = Registration(who, f"ha-{address}", RegistrationVersion(0, 1, 1), topics).to_command()
    return remoting.ask(REGISTER_BROKER, dict(said.fields or {}), bytes(said.body)).fields


def test_a_broker_is_there_until_its_connection_closes(tmp_path: Path) -> None:
    with NamesProcess(tmp_path / "names") as names:
        with names.connect() as master, names.connect() as slave:
            assert register(master) == {}
            assert register(slave, "h:2", 1) == {"masterAddr": "h:1", "haServerAddr": "ha-h:1"}
            assert names.route("T") == {"b": {"0": "h:1", "1": "h:2"}}
        names.until_route("T", None)
        assert names.stop() == 0


def test_a_broker_that_says_nothing_is_forgotten(tmp_path: Path) -> None:
    quick = {"names_broker_expiry": 300, "scan_not_active_broker_interval": 50}
    with NamesProcess(tmp_path / "names", **quick) as names, names.connect() as remoting:
        register(remoting)
        names.until_route("T", None)


@pytest.mark.slow
def test_servers_are_independent_and_values_survive_kill_9(tmp_path: Path) -> None:
    with NamesProcess(tmp_path / "one") as one, NamesProcess(tmp_path / "two") as two:
        with one.connect() as remoting:
            register(remoting)
            assert one.route("T") is not None
            assert two.route("T") is None
        assert one.ask(PUT_KV, {"namespace": "ORDER_TOPIC_CONFIG", "key": "T", "value": "b:4"}).code == 0
        one.stop(signal.SIGKILL)
        one.start()
        assert one.ask(GET_KV, {"namespace": "ORDER_TOPIC_CONFIG", "key": "T"}).fields == {"value": "b:4"}
        assert two.ask(GET_KV, {"namespace": "ORDER_TOPIC_CONFIG", "key": "T"}).code == 22


def test_what_people_and_machines_ask_of_it(tmp_path: Path) -> None:
    with NamesProcess(tmp_path / "names") as names:
        assert b"namesPort=" in names.ask(GET_CONFIG).body
        refused = names.ask(UPDATE_CONFIG, body=b"listenPort=1\n")
        assert (refused.code, "start it again" in refused.remark) == (1, True)
        assert names.ask(1).remark == " request type 1 not supported"
        controller = names.ask(RequestCode.CONTROLLER_ELECT_MASTER)
        assert controller.code == ResponseCode.REQUEST_CODE_NOT_SUPPORTED
        assert "CONTROLLER_ELECT_MASTER: there is no controller; see tandem replica list" in str(controller.remark)
        with urllib.request.urlopen(names.told["metrics"], timeout=30) as page:
            text = page.read().decode()
        assert "tandem_build_info{" in text
        with grpc.insecure_channel(names.told["address"]) as channel:
            described = NodeStub(channel).Describe(node_pb2.DescribeRequest(), timeout=30, wait_for_ready=True)
        assert described.service == "names"


def test_a_port_that_is_taken_and_values_that_cannot_be_read_are_told(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        names = NamesProcess(tmp_path / "names", names_port=taken.getsockname()[1])
        with pytest.raises(AssertionError, match="cannot serve names on"):
            names.start()
        names.stop()
    (tmp_path / "names" / "kvConfig.json").write_text('{"configTable":')
    names = NamesProcess(tmp_path / "names")
    with pytest.raises(AssertionError, match="cannot be read"):
        names.start()
    names.stop()


def test_what_it_tells_prometheus(tmp_path: Path) -> None:
    with NamesProcess(tmp_path / "names") as names:

        def scraped() -> dict[str, float]:
            with urllib.request.urlopen(names.told["metrics"], timeout=60) as answer:
                lines = str(answer.read(), "utf-8").splitlines()
            found = (line.rpartition(" ") for line in lines if not line.startswith("#"))
            return {name: float(value) for name, _, value in found}

        def value(name: str, *labels: str) -> float | None:
            found = [number for key, number in scraped().items() if key.startswith(name + "{") and all(
                label in key for label in labels)]  # fmt: skip
            return sum(found) if found else None

        def broker(name: str, address: str) -> float | None:
            return value("tandem_names_broker", f'broker="{name}"', f'address="{address}"', 'cluster="C"')

        with names.connect() as one, names.connect() as two:
            register(one)
            register(two, "h:2", 0, "ends")
            assert (broker("b", "h:1"), broker("ends", "h:2")) == (1, 1)
            assert value("tandem_names_topics") == 1
            assert value("tandem_names_connections") == 2
            calls = 'request_code="register_broker"', 'response_code="success"', 'protocol_type="remoting"'
            assert value("rocketmq_rpc_latency_milliseconds_count", *calls) == 2
            assert names.route("none") is None
            refused = 'request_code="get_routeinfo_by_topic"', 'response_code="topic_not_exist"'
            assert value("rocketmq_rpc_latency_milliseconds_count", *refused) == 1
            assert one.call(9999).code == NOT_SUPPORTED
            assert value("tandem_names_refused_total", 'reason="unknown"') == 1
            two.ask(UNREGISTER, {"clusterName": "C", "brokerName": "ends", "brokerAddr": "h:2", "brokerId": 0})
        names.until_route("T", None)
        assert broker("b", "h:1") == 0, "it went without a word"
        assert broker("ends", "h:2") is None
        assert value("tandem_names_forgotten_brokers_total", 'reason="closed"') == 1
        assert value("tandem_names_forgotten_brokers_total", 'reason="silent"') == 0
        with names.connect() as again:
            register(again, "h:9")
            assert (broker("b", "h:1"), broker("b", "h:9")) == (None, 1), "another has taken its place"
