"""Where there is no admin service: a store that runs alone makes topics and groups itself."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from tandemmq.cli.nouns.calls import DEFAULT_ADMIN_ADDRESS
from tandemmq.cli.talk.contexts import SERVER
from tandemmq.cli.talk.failures import CallFailed
from tandemmq.cli.talk.options import DEFAULT_ADDRESS

if TYPE_CHECKING:
    from tandemmq.delivery.v1.operations_pb2_grpc import OperationsStub


@contextmanager
def or_store(address: str, broker: str) -> "Iterator[LoneStore]":
    """Try the admin service in the block; if there is none, `LoneStore.address` is a store to ask instead.

    Raises the block's CallFailed where that is no way out: it is another failure, a broker was named, or an admin was.
    """
    store = LoneStore()
    try:
        yield store
    except CallFailed as failure:
        store.address = _instead(failure, address)
        if broker or not store.address or not _answers(store.address):
            raise


class LoneStore:
    """The store to ask, once the admin service was not there."""

    address = ""
    """Empty: the admin service has done it."""


def _instead(failure: CallFailed, address: str) -> str:
    """The address of a store that may be asked in place of an admin at `address`; empty for none."""
    if failure.failure.status == "UNIMPLEMENTED":  # somebody else answers there
        return address
    nobody = failure.failure.status == "UNAVAILABLE" and address in (DEFAULT_ADMIN_ADDRESS, os.environ.get(SERVER))
    return os.environ.get("TANDEM_ADDRESS") or DEFAULT_ADDRESS if nobody else ""


def _answers(address: str) -> bool:
    from tandemmq.delivery.v1.operations_pb2 import ViewGroupsRequest

    try:
        with operations_at(address) as operations:
            operations.ViewGroups(ViewGroupsRequest(groups=["none"]), timeout=5)
    except CallFailed as failure:
        return failure.failure.status not in ("UNAVAILABLE", "UNIMPLEMENTED", "DEADLINE_EXCEEDED")
    return True


@contextmanager
def operations_at(address: str) -> "Iterator[OperationsStub]":
    """Give a stub of a store's Operations. Raises as `connect_to`."""
    from tandemmq.cli.talk.connection import STORE, connect_to
    from tandemmq.delivery.v1.operations_pb2_grpc import OperationsStub

    with connect_to(STORE, address) as channel:
        yield OperationsStub(channel)
