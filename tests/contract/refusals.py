"""Checking a refusal: its statuses, and that nothing else was disturbed."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, cast

import grpc
import pytest

from tandemmq.store.v1 import store_pb2
from tandemmq.store.v1.store_pb2_grpc import StoreStub


def statuses(error: grpc.RpcError) -> tuple[str, str | None]:
    """The gRPC code and the RocketMQ status of a failed call."""
    call = cast(Any, error)
    return call.code().name, dict(call.trailing_metadata() or ()).get("rocketmq-status")


@contextmanager
def refused(stub: StoreStub, code: str, status: str, words: str = "") -> Iterator[None]:
    """The call in the block must fail with these statuses, say `words`, and leave the store as it was."""
    before = _state(stub)
    with pytest.raises(grpc.RpcError) as raised:
        yield
    assert statuses(raised.value) == (code, status)
    assert words in (cast(Any, raised.value).details() or "")
    assert _state(stub) == before


def _state(stub: StoreStub) -> store_pb2.ListQueuesResponse:
    """Topics, queues and the log; not how much of it is on disk, which moves by itself."""
    state = stub.ListQueues(store_pb2.ListQueuesRequest())
    state.log.ClearField("flushed_offset")
    return state
