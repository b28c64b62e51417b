"""Whether a group pops or pulls a topic (mqadmin setConsumeMode) is kept in RocketMQ's own file."""

import json
import signal
from pathlib import Path

from tandemmq.common.wire.remoting.codes import RequestCode, ResponseCode
from tests.contract.remoting.classic_client import ClassicClient
from tests.contract.remoting.conftest import classic, port_of
from tests.contract.store_process import StoreProcess

FILE = "messageRequestMode.json"
MAP = "messageRequestModeMap"


def said(group: str, topic: str, mode: str = "POP", share: int = 0) -> dict[str, object]:
    """What the tool says, and what RocketMQ keeps of it."""
    return {"consumerGroup": group, "mode": mode, "popShareQueueNum": share, "topic": topic}


def put(store: StoreProcess, mode: dict[str, object]) -> int:
    """Sets it; gives the answer's code."""
    with ClassicClient(port_of(store)) as client:
        return client.call(RequestCode.SET_MESSAGE_REQUEST_MODE, None, json.dumps(mode).encode()).code


def shown(store: StoreProcess) -> object:
    """All modes, as a Java slave is told."""
    with ClassicClient(port_of(store)) as client:
        return json.loads(client.ask(RequestCode.GET_ALL_MESSAGE_REQUEST_MODE).body)[MAP]


def leave(store: StoreProcess, text: str) -> None:
    """The file, as somebody else has written it."""
    path = store.directory / "config" / FILE
    path.parent.mkdir(exist_ok=True)
    path.write_text(text)


def mode_of(store: StoreProcess, group: str, topic: str) -> set[str]:
    """How a consumer of the group is told to consume."""
    with ClassicClient(port_of(store), "consumer") as client:
        client.send(topic)
        client.heartbeat(consumes={group: {topic: "*"}})
        body = {"consumerGroup": group, "topic": topic, "clientId": "consumer"}
        answer = client.ask(RequestCode.QUERY_ASSIGNMENT, None, json.dumps(body).encode())
        return {one["mode"] for one in json.loads(answer.body)["messageQueueAssignments"]}


def test_modes_survive_a_kill(tmp_path: Path) -> None:
    with classic(tmp_path / "store") as store:
        assert put(store, said("poppers", "one", share=2)) == ResponseCode.SUCCESS
        assert put(store, said("others", "one", "PULL")) == ResponseCode.SUCCESS
        assert put(store, said("poppers", "two")) == ResponseCode.SUCCESS
        store.restart(signal.SIGKILL)
        expected = {
            "one": {"others": said("others", "one", "PULL"), "poppers": said("poppers", "one", share=2)},
            "two": {"poppers": said("poppers", "two")},
        }
        assert shown(store) == expected
        assert json.loads((store.directory / "config" / FILE).read_text())[MAP] == expected
        assert mode_of(store, "poppers", "one") == {"POP"}
        assert mode_of(store, "others", "one") == {"PULL"}
        assert put(store, said("poppers", "one", "PULL")) == ResponseCode.SUCCESS
        store.restart(signal.SIGKILL)
        assert mode_of(store, "poppers", "one") == {"PULL"}


def test_the_file_of_a_rocketmq_broker_is_taken(tmp_path: Path) -> None:
    """As MessageRequestModeManager of 5.3 writes it."""
    with classic(tmp_path / "store") as store:
        store.stop()
        text = (
            '{\n\t"messageRequestModeMap":{\n\t\t"javas":{\n\t\t\t"poppers":{\n\t\t\t\t"consumerGroup":"poppers",\n'
            '\t\t\t\t"mode":"POP",\n\t\t\t\t"popShareQueueNum":3,\n\t\t\t\t"topic":"javas"\n\t\t\t}\n\t\t}\n\t}\n}'
        )
        leave(store, text)
        store.start()
        assert shown(store) == {"javas": {"poppers": said("poppers", "javas", share=3)}}
        assert mode_of(store, "poppers", "javas") == {"POP"}


def test_a_file_that_makes_no_sense_is_not_passed_over(tmp_path: Path) -> None:
    with classic(tmp_path / "store") as store:
        store.stop()
        leave(store, '{"messageRequestModeMap":{"t":{"g":{"mode":"PUSH"}}}}')
        store.launch()
        assert store.wait() != 0
        text = store.log.read_text()
        assert FILE in text
        assert "group g has a mode for topic t that makes no sense: PUSH" in text


def test_the_file_is_read_when_the_directory_is_this_stores_alone(tmp_path: Path) -> None:
    """Before that, whoever still has the directory may write it."""
    with classic(tmp_path / "store") as store:
        leave(store, "{}")
        other = classic(store.directory)
        other.log = tmp_path / "other.log"
        other.launch()
        assert other.wait() != 0
        assert "is in use by another process" in other.log.read_text()


def test_a_store_without_classic_clients_does_not_ask_for_it(tmp_path: Path) -> None:
    with classic(tmp_path / "store", remoting_mode="off") as store:
        leave(store, "{}")
        assert '"store open"' in store.restart(signal.SIGKILL).log.read_text()


def test_what_cannot_be_set_is_refused(tmp_path: Path) -> None:
    with classic(tmp_path / "store") as store:
        assert put(store, said("g", "%RETRY%g")) == ResponseCode.NO_PERMISSION
        assert put(store, said("g", "t", "PUSH")) == ResponseCode.SYSTEM_ERROR
        assert shown(store) == {}


def test_a_number_that_java_could_not_read_is_not_kept(tmp_path: Path) -> None:
    with classic(tmp_path / "store") as store:
        assert put(store, said("g", "t", share=1 << 31)) == ResponseCode.SUCCESS
        assert shown(store) == {"t": {"g": said("g", "t")}}
