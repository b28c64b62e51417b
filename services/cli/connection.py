"""The connection to a store, for commands: opened late, closed always, errors told in one line."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from tandemmq.cli.failures import CallFailed, CommandFailed, Failure

if TYPE_CHECKING:
    from tandemmq.client import ClientError, StoreClient


@contextmanager
def connect(address: str) -> "Iterator[StoreClient]":
    """Give a client of the store at `address`; nothing is sent before the first call.

    Raises:
        CommandFailed: the address is none. CallFailed: a call failed, in the client or on its bare stub.
    """
    host, _, port = address.rpartition(":")
    if not host or not port.isdecimal():
        raise CommandFailed(f"{address!r} is no address of a store; write it as HOST:PORT, as in 127.0.0.1:8081")
    import grpc

    from tandemmq.client import ClientError, StoreClient
    from tandemmq.client.errors import from_rpc

    try:
        with StoreClient(address) as client:
            yield client
    except grpc.RpcError as error:
        raise CallFailed(_failure(from_rpc(error), address)) from error
    except ClientError as error:
        raise CallFailed(_failure(error, address)) from error


def _failure(error: "ClientError", address: str) -> Failure:
    """What happened, and what to do where the store itself could not say it."""
    message = error.explain()
    if not error.status and error.code == "UNAVAILABLE":
        message = f"no store answers at {address}; start one with `tandem store`, or name its address with --address"
    elif not error.status and error.code == "DEADLINE_EXCEEDED":
        message = f"the store at {address} did not answer in time; look at its log, then try again"
    elif not error.status and error.code == "RESOURCE_EXHAUSTED":
        message = f"the request is larger than the store takes, see its setting grpcMaxMessageSize ({message})"
    elif not error.status and error.code == "UNIMPLEMENTED":
        message = f"what answers at {address} is no TandemMQ store of this version ({message})"
    return Failure(message, error.code, error.status)
