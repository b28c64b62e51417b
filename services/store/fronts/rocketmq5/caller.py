"""Caller: who makes a call, as its headers say."""

from typing import Any, NamedTuple

import grpc

from tandemmq.common.grpc_transport import DirectCall
from tandemmq.rocketmq5.v2 import resources_pb2 as pb
from tandemmq.store.format.host import Host
from tandemmq.store.fronts.native.requests import peer_host
from tandemmq.store.fronts.rocketmq5.statuses import ProtocolRefusal

Context = grpc.aio.ServicerContext[Any, Any]

MOST_CLIENT_ID = 255


class Caller(NamedTuple):
    """What the headers of one call say. Nothing of it is proven but by `authorization`."""

    client_id: str
    language: str
    version: str
    namespace: str
    authorization: str
    date_time: str
    peer: Host
    """Where the connection comes from."""

    def named(self) -> "Caller":
        """The caller, who must have said its client id. Raises ProtocolRefusal."""
        if not self.client_id:
            raise ProtocolRefusal(pb.CLIENT_ID_REQUIRED, "The header x-mq-client-id is missing or blank.")
        if len(self.client_id) > MOST_CLIENT_ID:
            raise ProtocolRefusal(
                pb.BAD_REQUEST, f"The client id has {len(self.client_id):,} characters: {MOST_CLIENT_ID} are allowed."
            )
        return self


def caller_of(context: Context | DirectCall) -> Caller:
    """Who makes a call."""
    found: dict[str, str] = {}
    for key, value in context.invocation_metadata() or ():
        if key == "authorization" or key.startswith("x-mq-"):
            found[key] = value if isinstance(value, str) else str(value, "latin-1")
    get = found.get
    return Caller(
        get("x-mq-client-id", "").strip(),
        get("x-mq-language", ""),
        get("x-mq-client-version", ""),
        get("x-mq-namespace", "").strip(),
        get("authorization", ""),
        get("x-mq-date-time", ""),
        peer_host(context.peer()),
    )
