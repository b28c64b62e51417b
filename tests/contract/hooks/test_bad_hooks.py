"""Hooks that cannot be had end the start; what they do later never ends or tears a store."""

import signal
from pathlib import Path

import grpc
import pytest

from tandemmq.store.v1 import store_pb2
from tandemmq.store.v1.message_pb2 import Message
from tests.contract.refusals import statuses
from tests.contract.store_process import StoreProcess

pytestmark = pytest.mark.usefixtures("with_hooks")


@pytest.fixture(scope="module")
def transport() -> str:
    """Hooks have nothing to do with what serves gRPC: once is enough."""
    return "fast"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("hooks", "says"),
    [
        ("audt", ["'audt'", "there are: audit, broken, missing, moody, nothing, waits"]),
        ("moody,moody", ["names one twice"]),
        ("waits", ["async methods: after_send, before_send"]),
        ("nothing", ["neither SendHook nor ConsumeHook"]),
        ("broken", ["cannot be made: OSError: no audit file"]),
        ("missing", ["cannot be made: AttributeError"]),
    ],
)
def test_a_hook_that_cannot_be_had_ends_the_start(tmp_path: Path, hooks: str, says: list[str]) -> None:
    store = StoreProcess(tmp_path / "store", hooks=hooks)
    store.launch()
    assert store.wait() != 0
    log = store.log.read_text()
    assert [word for word in says if word not in log] == []
    assert "Traceback" not in log
    assert not (tmp_path / "store" / "commitlog").exists(), "nothing was opened"


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_a_moody_hook_tears_nothing(tmp_path: Path, number: signal.Signals) -> None:
    moods = [b"raise after", b"exit after", b"slow", b"nothing"]
    with StoreProcess(tmp_path / "store", hooks="moody") as store:
        with store.stub() as stub:
            for body in (*moods, *moods):
                stub.Send(store_pb2.SendRequest(message=Message(topic="T", body=body, queue_id=0)))
            with pytest.raises(grpc.RpcError) as refused:
                stub.Send(store_pb2.SendRequest(message=Message(topic="T", body=b"exit before", queue_id=0)))
        assert statuses(refused.value)[0] == "PERMISSION_DENIED"
        scraped = store.scrape()
        (slow,) = (line for line in scraped if "hook_duration_seconds_sum" in line and "after_send" in line)
        assert float(slow.split()[-1]) >= 0.4
        (failed,) = (line for line in scraped if "hook_failures_total" in line and "after_send" in line)
        assert float(failed.split()[-1]) == 4
        assert len([event for event in store.events() if event["event"] == "hook failed"]) == 1, "logged seldom"
        store.restart(number)
        with store.client() as client:
            assert [one.body for one in client.pull("T", 0, 0).records] == moods * 2
