"""Names that a shell completes: asked of the admin service, which may not be there; then nothing is completed."""

import os
from collections.abc import Callable
from typing import TYPE_CHECKING

from tandemmq.common.errors import TandemError

if TYPE_CHECKING:
    from tandemmq.admin.v1.admin_pb2_grpc import AdminStub

PATIENCE_SECONDS = 1.0
"""A person who has pressed Tab waits no longer."""

_MOST = 100


def topics(incomplete: str) -> list[str]:
    """Topics that begin so."""
    from tandemmq.admin.v1 import admin_pb2

    request = admin_pb2.ListTopicsRequest(match=f"{incomplete}*", limit=_MOST)
    return _ask(lambda admin: [one.config.name for one in admin.ListTopics(request, timeout=PATIENCE_SECONDS).topics])


def groups(incomplete: str) -> list[str]:
    """Groups that begin so."""
    from tandemmq.admin.v1 import admin_pb2

    request = admin_pb2.ListGroupsRequest(match=f"{incomplete}*", limit=_MOST)
    return _ask(lambda admin: [one.config.name for one in admin.ListGroups(request, timeout=PATIENCE_SECONDS).groups])


def nodes(incomplete: str) -> list[str]:
    """Nodes that begin so."""
    from tandemmq.admin.v1 import admin_pb2

    request = admin_pb2.GetClusterRequest()
    found = _ask(lambda admin: [one.name for one in admin.GetCluster(request, timeout=PATIENCE_SECONDS).nodes])
    return [name for name in found if name.startswith(incomplete)]


def jobs(incomplete: str) -> list[str]:
    """Jobs that begin so."""
    from tandemmq.admin.v1 import admin_pb2

    request = admin_pb2.ListJobsRequest()
    found = _ask(lambda admin: [one.id for one in admin.ListJobs(request, timeout=PATIENCE_SECONDS).jobs])
    return [name for name in found if name.startswith(incomplete)]


def _ask(call: "Callable[[AdminStub], list[str]]") -> list[str]:
    from tandemmq.cli.nouns.calls import DEFAULT_ADMIN_ADDRESS, admin_at

    try:
        with admin_at(os.environ.get("TANDEM_ADMIN_ADDRESS", DEFAULT_ADMIN_ADDRESS)) as admin:
            return sorted(set(call(admin)))
    except TandemError:
        return []
