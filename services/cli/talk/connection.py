"""Connections of commands to services: TLS and credentials as the root options say, errors told in one line."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple

from tandemmq.cli.talk.contexts import SECRET_HOSTS, SERVER
from tandemmq.cli.talk.failures import CallFailed, Failure, WrongUsage
from tandemmq.common.calling.addresses import host_of
from tandemmq.common.settings import default_ports

if TYPE_CHECKING:
    import grpc

    from tandemmq.client import ClientError, Identity, StoreClient


class ServiceKind(NamedTuple):
    """A kind of service, in words for people."""

    noun: str
    example: str
    """An address, as one would write it."""
    start: str
    """What to do when none answers."""


STORE = ServiceKind(
    "store", f"127.0.0.1:{default_ports.STORE}", "`tandem up` starts one; or name its address with --address"
)
RUNNING_STORE = STORE._replace(start="--running names a store that runs on this directory; is it up?")
REPLICATOR = ServiceKind(
    "replicator", f"127.0.0.1:{default_ports.REPLICATOR}", "`tandem up` and `tandem serve replicator` start one"
)
METASYNC = ServiceKind(
    "metasync", f"127.0.0.1:{default_ports.METASYNC}", "`tandem up` and `tandem serve metasync` start one"
)
HA = ServiceKind("master's HA port", f"127.0.0.1:{default_ports.HA}", "the master's replicator has it")
ADMIN = ServiceKind("admin", f"127.0.0.1:{default_ports.ADMIN}", "`tandem up` and `tandem serve admin` start one")


@contextmanager
def connect(address: str) -> "Iterator[StoreClient]":
    """Give a client of the store at `address`, or of the master of several; one is not asked before the first call.

    Raises:
        WrongUsage: the address is none. CallFailed: a call failed, in the client or on its bare stub. UnusableFile,
        UnreadableSecret, BadUserName: the root options name what cannot be used.
    """
    address = resolved(STORE, address)
    from tandemmq.client import StoreClient

    with told(STORE, address), StoreClient(address, **_identity().at(address).arguments()) as client:
        client.find_master()
        yield client


@contextmanager
def connect_to(kind: ServiceKind, address: str) -> "Iterator[grpc.Channel]":
    """Give a channel to another service, for generated stubs. What its calls raise becomes what `connect` raises."""
    address = resolved(kind, address)
    from tandemmq.client.channels import open_channel

    with told(kind, address), open_channel(address, **_identity().at(address).arguments()) as channel:
        yield channel


def check_addresses(addresses: str) -> None:
    """Whether they are addresses of stores, with commas between. Raises WrongUsage."""
    for address in addresses.split(","):
        check_address(STORE, address.strip())


def resolved(kind: ServiceKind, address: str) -> str:
    """Where such a service answers, if `address` is the one of a cluster, or several of it: else that.

    Raises as `connect`.
    """
    for one in address.split(","):
        check_address(kind, one.strip())
    if not os.environ.get(SERVER):
        return address
    from tandemmq.cli.talk.discovery import resolve

    with told(kind, address):
        found = resolve(kind.noun, address)
    trust(found, address)
    return found


def trust(found: str, teller: str) -> None:
    """Let a secret go to what the cluster has told at an address to which it goes."""
    identity = _identity()
    if identity.secret_hosts and identity.at(teller) == identity != identity.at(found):
        os.environ[SECRET_HOSTS] = ",".join((*identity.secret_hosts, *map(host_of, found.split(","))))


def check_address(kind: ServiceKind, address: str) -> None:
    """Whether it is one of such a service. Raises WrongUsage."""
    host, _, port = address.rpartition(":")
    if not host or "/" in host or not port.isdecimal() or not 0 < int(port) < 1 << 16:
        raise WrongUsage(
            f"{address!r} is no address of {_article(kind.noun)} {kind.noun}; "
            f"write it as HOST:PORT, as in {kind.example}"
        )


def _article(noun: str) -> str:
    return "an" if noun[0] in "aeiou" else "a"


@contextmanager
def told(kind: ServiceKind, address: str) -> Iterator[None]:
    """Make failures that can be shown of gRPC's errors and the client's."""
    import grpc

    from tandemmq.client import ClientError
    from tandemmq.client.errors import from_rpc

    try:
        yield
    except grpc.RpcError as error:
        raise CallFailed(_failure(from_rpc(error), kind, address)) from error
    except ClientError as error:
        raise CallFailed(_failure(error, kind, address)) from error


def _failure(error: "ClientError", kind: ServiceKind, address: str) -> Failure:
    """What happened, and what to do where the service itself could not say it."""
    message = error.explain()
    if leader := getattr(error, "leader", ""):
        message = f"{message} (its master: --address {leader})"
    elif not error.status and error.code in ("UNAVAILABLE", "DEADLINE_EXCEEDED"):
        message = _why_away(error.code, kind, address)
    elif not error.status and error.code == "RESOURCE_EXHAUSTED":
        message = f"the request is larger than the {kind.noun} takes, see its setting grpcMaxMessageSize ({message})"
    elif not error.status and error.code == "UNIMPLEMENTED":
        message = _who_else(kind, address)
    elif error.code == "UNAUTHENTICATED":
        message = f"the {kind.noun} at {address} does not let you in: {message}{_withheld(address)}"
    return Failure(message, error.code, error.status.replace("UNKNOWN_ERROR", ""))


def _withheld(address: str) -> str:
    """Why the secret that is there did not go along."""
    identity = _identity()
    if identity.at(address) == identity:
        return ""
    return (
        f"; the secret of the context goes to {', '.join(identity.secret_hosts)} only: name this address in its "
        "--server too, or say --user and --secret-file"
    )


def _identity() -> "Identity":
    from tandemmq.client import Identity

    return Identity.from_environment()


def _who_else(kind: ServiceKind, address: str) -> str:
    """Somebody answers who does not know the call."""
    from tandemmq.cli.talk.discovery import service_at

    found = service_at(address)
    if found in ("", kind.noun):
        return f"what answers at {address} is no TandemMQ {kind.noun} of this version"
    return (
        f"at {address} {_article(found)} {found} answers, and {_article(kind.noun)} {kind.noun} is wanted, as at "
        f"{kind.example}; name it with --address"
    )


def _why_away(code: str, kind: ServiceKind, address: str) -> str:
    """No answer came: looks whether TLS is the reason, or somebody else is there."""
    if "," not in address and (found := _what_is_there(code, kind, address)):
        return found
    if code == "DEADLINE_EXCEEDED":
        return f"the {kind.noun} at {address} did not answer in time; look at its log, then try again"
    return f"no {kind.noun} answers at {address}; {kind.start}"


def _what_is_there(code: str, kind: ServiceKind, address: str) -> str:
    """Why who listens there does not answer, if that can be told."""
    from tandemmq.cli.talk.listener import is_listening, protocol_at

    identity = _identity()
    if not identity.speaks_tls:
        if not is_listening(address):
            return ""
        if code == "UNAVAILABLE" and (other := protocol_at(address)):
            return (
                f"at {address} {other} answers, and {_article(kind.noun)} {kind.noun} is wanted, as at "
                f"{kind.example}; name it with --address"
            )
    from tandemmq.cli.talk.tls_diagnosis import diagnose  # takes a third of the time that importing gRPC does

    found = diagnose(address, identity)
    return f"the {kind.noun} at {address} {found}" if found else ""
