"""Checking a refusal: its statuses, and that nothing else was disturbed."""

from collections.abc import Iterator
from contextlib import contextmanager

import grpc
import pytest

from tandemmq.store.v1 import store_pb2
from tandemmq.store.v1.store_pb2_grpc import StoreStub


@contextmanager
def refused(stub: StoreStub, code: str, status: str, words: str = "") -> Iterator[None]:
    """The call in the block must fail with these statuses, say `words`, and leave the store as it was."""
    before = stub.ListQueues(store_pb2.ListQueuesRequest())
    with pytest.raises(grpc.RpcError) as raised:
        yield
    error = raised.value
    assert isinstance(error, grpc.Call)
    assert (error.code().name, dict(error.trailing_metadata() or ()).get("rocketmq-status")) == (code, status)
    assert words in (error.details() or "")
    assert stub.ListQueues(store_pb2.ListQueuesRequest()) == before
