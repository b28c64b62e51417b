"""Numbers of a node that several commands show."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tandemmq.admin.v1.admin_pb2 import Node


def is_following(node: "Node") -> bool:
    """Whether it has a master."""
    return bool(node.replication.follower.master_address)


def slave_lag(node: "Node") -> int:
    """Bytes of its master's log that a slave does not have; 0 for a master."""
    follower = node.replication.follower
    return max(0, follower.master_max_offset - follower.acked_offset) if is_following(node) else 0


def disk_used(node: "Node") -> float | None:
    """Used part of a node's disk, 0 to 1; None if its store does not say."""
    disk = node.disk
    return 1 - disk.free_bytes / disk.total_bytes if disk.total_bytes else None
