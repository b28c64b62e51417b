"""A store that has just started tells classic clients where groups stand as soon as it knows, and nothing before."""

import json
import time
from pathlib import Path

import pytest

from tests.contract.remoting.classic_client import ClassicClient
from tests.contract.remoting.conftest import classic, port_of

GROUPS = 20_000


@pytest.mark.slow
def test_positions_are_asked_for_in_the_moment_of_a_start(tmp_path: Path) -> None:
    with classic(tmp_path / "store") as store:
        client = ClassicClient(port_of(store))
        for number in range(5):
            client.send("many", b"%d" % number)
        client.close()
        store.stop()
        table = {f"many@group-{number}": {"0": 3} for number in range(GROUPS)}
        (store.directory / "config" / "consumerOffset.json").write_text(json.dumps({"offsetTable": table}))
        store.log.unlink()
        store.launch()
        deadline = time.monotonic() + 60
        while not any(event["event"] == "listening for classic clients" for event in store.events()):
            assert time.monotonic() < deadline, store.log.read_text()
            time.sleep(0.005)
        client = ClassicClient(port_of(store))
        assert client.position(f"group-{GROUPS - 1}", "many").fields == {"offset": "3"}
        client.close()
