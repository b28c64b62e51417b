"""Errors of the Replication service."""

from typing import NoReturn

import grpc

from tandemmq.common.errors import Kind, TandemError


class WrongNodeRole(TandemError):
    """The call is for a master, or for a slave, and this node is none."""

    kind = Kind.WRONG_ROLE


class StillServing(TandemError):
    """A master that takes messages cannot become a slave: it would have what its new master has not."""

    kind = Kind.NOT_POSSIBLE
    remedy = "promote the other node first (tandem replica promote there): that fences this one"


class WrongMaster(TandemError):
    """A slave of another broker wants to follow us."""

    kind = Kind.NOT_POSSIBLE
    remedy = "a master and its slaves have the same brokerClusterName and brokerName"


class NotAllowedToCall(TandemError):
    """The caller's address is not one of haAllowedPeers."""

    kind = Kind.NOT_PERMITTED


class BadReplicatorRequest(TandemError):
    """A field of the request has no meaning."""

    kind = Kind.INVALID


class OwnStoreUnreachable(TandemError):
    """Our store does not answer."""

    kind = Kind.AWAY
    remedy = "is the store running, and storeAddress its internal address?"


class StoreRefuses(TandemError):
    """Our store says no."""

    kind = Kind.NOT_POSSIBLE


class StoreFailed(TandemError):
    """Our store failed in a way that nobody expects."""


_REFUSALS = (
    grpc.StatusCode.FAILED_PRECONDITION,
    grpc.StatusCode.INVALID_ARGUMENT,
    grpc.StatusCode.ALREADY_EXISTS,
    grpc.StatusCode.RESOURCE_EXHAUSTED,  # its disk is full
)
_ABSENT = (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.DEADLINE_EXCEEDED)


def raise_for_store(error: grpc.aio.AioRpcError) -> NoReturn:
    """The error that a failed call to our own store means to our caller. Raises it."""
    details = error.details() or error.code().name
    if error.code() in _REFUSALS:
        raise StoreRefuses(details) from error
    if error.code() in _ABSENT:
        raise OwnStoreUnreachable(f"the store does not answer: {details}") from error
    raise StoreFailed(f"the store failed: {details}") from error


class PromotionStopped(TandemError):
    """A check before the promotion failed; this node is still a slave."""

    kind = Kind.NOT_POSSIBLE


class OldMasterSilent(PromotionStopped):
    """It cannot be known what the old master has."""

    remedy = (
        "make sure that it is dead or that no producer can reach it, and say so with old_master_is_gone "
        "(--old-master-is-gone)"
    )


class NotFollowing(PromotionStopped):
    """The old master lives and takes messages, and this node does not get them; nothing has changed."""

    remedy = "let this node catch up first (tandem replica list says how it is), or accept a loss (--accept-loss)"


class NewerMaster(PromotionStopped):
    """There is a newer master than the one that this node knows, or this is a master that was replaced."""

    remedy = (
        "make it a slave of the newer master (tandem replica follow); or, when that one never came to be, say so with "
        "old_master_is_gone (--old-master-is-gone)"
    )


class GroupUnknown(PromotionStopped):
    """Nobody told this node what its master had, and which other slaves it has."""

    remedy = (
        "promote a slave that has followed it; or, if there is none, accept that messages may be lost with accept_loss "
        "(--accept-loss)"
    )


class NothingProven(PromotionStopped):
    """The old master is silent, and may acknowledge messages that no slave has."""

    remedy = (
        "make sure that it is dead, and accept that messages may be lost with accept_loss (--accept-loss); "
        "SYNC_MASTER with inSyncReplicas=2 waits for a slave"
    )


class AnotherCandidate(PromotionStopped):
    """Another node has asked to become master, and does not answer."""

    remedy = (
        "let it answer, or promote it; if it is gone for good and never was a master, say so with accept_loss "
        "(--accept-loss)"
    )


class MissingHere(PromotionStopped):
    """Somebody has messages that this node does not have."""

    remedy = "wait until this node has caught up, or accept the loss with accept_loss (--accept-loss)"


class OtherSlaveSilent(PromotionStopped):
    """Too few of the other slaves promised to follow the old master no more."""

    remedy = (
        "start them, or name their replicators with other_slaves (--other-slave); without them the old master may "
        "still acknowledge messages, and may have acknowledged some that only they have: that is accepted with "
        "accept_loss (--accept-loss)"
    )
