"""Introducing an HA connection to the master's replicator. RocketMQ has no such thing, and is followed without."""

import grpc

from tandemmq.common.log_output import get_log
from tandemmq.replication.v1.replication_pb2 import JoinRequest, JoinResponse
from tandemmq.replication.v1.replication_pb2_grpc import ReplicationStub
from tandemmq.replicator.channels import replicator_channel
from tandemmq.replicator.settings import ReplicatorSettings
from tandemmq.replicator.slave.following import MasterLog
from tandemmq.replicator.slave.slave_errors import NotAMaster, NotIntroduced
from tandemmq.store.v1.replica_log_pb2 import BrokerRole

JOIN_SECONDS = 2.0
"""How long the master's replicator may think; a master without one answers at once, or never."""

log = get_log(__name__)


async def join_master(settings: ReplicatorSettings, address: str, request: JoinRequest) -> JoinResponse | None:
    """What the master at `address` (gRPC) says of itself; None if there is nobody who would say it.

    Raises:
        NotAMaster: it says that it is none.
        NotIntroduced: nobody answers, and not only RocketMQ could be there: the address was set and somebody is slow,
            or this slave has followed a master that answered, or has promised not to follow an older one.
        UnreadableCertificate, UnreadableSecret: a file for TLS, or the secret for it, cannot be read.
    """
    channel = replicator_channel(settings, address)
    try:
        return await ReplicationStub(channel).Join(request, timeout=JOIN_SECONDS)
    except grpc.RpcError as error:
        code, details = error.code(), error.details()
        if code is grpc.StatusCode.FAILED_PRECONDITION:
            raise NotAMaster(f"the master at {address} says: {details}", remedy="") from error
        slow = code is grpc.StatusCode.DEADLINE_EXCEEDED and address == settings.ha_master_replicator_address
        if request.group_epoch or request.epoch > 1 or slow:
            raise NotIntroduced(f"the master's replicator at {address} does not answer: {details}") from error
        log.info("followed without introduction", replicator=address, code=code.name, details=details)
        return None
    finally:
        await channel.close()


def master_log(response: JoinResponse) -> MasterLog:
    """What the answer says of the master's log."""
    identity = response.identity
    return MasterLog(
        min_offset=response.min_offset,
        max_offset=response.max_offset,
        file_size=identity.file_size,
        epoch=identity.epoch,
        is_slave=identity.role == BrokerRole.SLAVE,
        fenced_by_epoch=identity.fenced_by_epoch,
    )
