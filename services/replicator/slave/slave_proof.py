"""Whether bytes that our store refused are the master's own: then its log is damaged there, and ours goes on."""

import grpc

from tandemmq.common.log_output import get_log
from tandemmq.replication.v1.replication_pb2 import ChecksumRequest
from tandemmq.replication.v1.replication_pb2_grpc import ReplicationStub
from tandemmq.replicator.channels import replicator_channel
from tandemmq.replicator.settings import ReplicatorSettings
from tandemmq.store.v1.replica_log_pb2 import RefusedBytes

log = get_log(__name__)

SAME_BYTES = 3
"""So many times in a row the very same bytes, each time over a new connection, are a proof where the master cannot be
asked (RocketMQ). What changes bytes on their way would have to change them in the same manner every time."""

_ANSWER_SECONDS = 10.0


async def is_masters_own(settings: ReplicatorSettings, address: str, refused: RefusedBytes, *, joined: bool) -> bool:
    """Ask the master's replicator at `address` (gRPC), if it is one that has introduced itself (`joined`).

    Raises:
        UnreadableCertificate, UnreadableSecret: a file for TLS, or the secret for it, cannot be read.
    """
    if not joined:
        return refused.times >= SAME_BYTES
    channel = replicator_channel(settings, address)
    try:
        request = ChecksumRequest(offset=refused.offset, size=refused.size)
        theirs = await ReplicationStub(channel).Checksum(request, timeout=_ANSWER_SECONDS)
    except grpc.RpcError as error:
        log.warning(
            "the master does not say what it has", offset=refused.offset, size=refused.size, why=error.details()
        )
        return False
    finally:
        await channel.close()
    same: bool = theirs.crc32 == refused.crc32
    log.warning(
        "the master has the refused bytes, too" if same else "the master has other bytes than those refused",
        offset=refused.offset,
        size=refused.size,
        reason=refused.reason,
    )
    return same
