"""The tests of the servers' semantics once more, with our channel as their caller; against grpcio's server and ours."""

import importlib
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from types import ModuleType
from typing import Any

import grpc
import pytest

from tandemmq.common.grpc_transport import Limits, channel
from tests.integration.grpc_transport import hosting

NAMES = (
    "context",
    "deadlines",
    "endings",
    "interceptors",
    "kinds",
    "listen",
    "metadata",
    "mistakes",
    "pressure",
    "status",
    "stop",
    "tasks",
)
MODULES: list[ModuleType] = [importlib.import_module(f"tests.integration.grpc_transport.test_{name}") for name in NAMES]
NOT_OURS = {
    "test_metadata__invocation_metadata_is_a_tuple_of_pairs_with_names": "it looks for grpcio's name",
    "test_status__abort_raises_for_the_handler_and_only_once": "our caller knows before the handler has gone on",
    "test_pressure__a_handler_that_reads_slowly_stops_its_caller_only[grpcio]": "its window grows with a fast caller",
}
"""Tests that are about grpcio's caller, or about what a slower one never sees -> why."""


@asynccontextmanager
async def channel_of_ours(
    target: str, credentials: Any = None, options: Sequence[Any] = (), compression: grpc.Compression | None = None
) -> AsyncIterator[Any]:
    """See hosting.channel_to."""
    if credentials is not None or options or compression is not None:
        pytest.skip("options of grpcio's channel")
    limits = Limits(max_receive_message_length=128 << 20, max_buffered=128 << 20)
    async with channel(target, limits=limits) as made:
        yield made


@pytest.fixture(autouse=True)
def _ours(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> None:
    for name in (request.node.originalname, request.node.name):
        if name in NOT_OURS:
            pytest.skip(NOT_OURS[name])
    for module in (hosting, *MODULES):
        if hasattr(module, "channel_to"):
            monkeypatch.setattr(module, "channel_to", channel_of_ours)


ASKS = {"unary", "into", "out", "both", "own", "method", "channel", "channel_to"}
"""What a test uses of `Hosted` to ask through a channel; others speak frames by hand, and are no matter of ours."""


def asks(function: Any) -> bool:
    names = {*function.__code__.co_names}
    inner = [constant for constant in function.__code__.co_consts if hasattr(constant, "co_names")]
    return bool(ASKS & names.union(*(constant.co_names for constant in inner)))


for _module, _name in zip(MODULES, NAMES, strict=True):
    for _test, _function in vars(_module).copy().items():
        if _test.startswith("test_") and asks(_function):
            globals()[f"test_{_name}__{_test.removeprefix('test_')}"] = _function
