"""What a gateway says when it starts: who passes plain messages on, and why."""

from pathlib import Path

import pytest

from tandemmq.store.compiled_core import core_problem
from tests.contract.gateway_process import GatewayProcess


@pytest.mark.slow
@pytest.mark.parametrize(
    ("settings", "told"),
    [
        pytest.param({}, "compiled", marks=pytest.mark.skipif(core_problem() != "", reason="the core is not built")),
        ({"compiled_core": "never"}, "python: compiledCore is never"),
        ({"grpc_transport": "grpcio"}, "python: grpcTransport is grpcio, which has no short way"),
    ],
)
def test_it_says_who_passes_plain_messages_on(tmp_path: Path, settings: dict[str, object], told: str) -> None:
    with GatewayProcess(tmp_path / "gateway", {"a": ["127.0.0.1:1"]}, **settings) as gateway:
        assert [one["core"] for one in gateway.events() if one["event"] == "plain messages"] == [told]
