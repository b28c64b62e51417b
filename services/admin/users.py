"""Who may do what: users and roles of the access file, for people. Secrets stay where they are."""

from tandemmq.admin.v1 import admin_pb2
from tandemmq.common.access.principal import Principal
from tandemmq.common.access.roles import BUILT_IN, AccessRole
from tandemmq.common.serving.guard import CallGuard


class Users:
    """Reads the table that is in force."""

    def __init__(self, guard: CallGuard) -> None:
        """`guard`: without a gate there are no users."""
        self._guard = guard

    def list(self) -> admin_pb2.ListUsersResponse:
        """See admin.proto."""
        gate = self._guard.gate
        if gate is None:
            return admin_pb2.ListUsersResponse(open=True)
        table = gate.keeper.table
        own = [role for name, role in sorted(table.roles.items()) if name not in BUILT_IN]
        return admin_pb2.ListUsersResponse(
            users=[_user(one) for _, one in sorted(table.principals.items())],
            roles=[_role(one) for one in (*own, *BUILT_IN.values())],
            problem=gate.keeper.problem,
        )


def _user(one: Principal) -> admin_pb2.AccessUser:
    return admin_pb2.AccessUser(
        name=one.name, roles=one.roles, has_secret=one.secret is not None, certificate=one.certificate or ""
    )


def _role(one: AccessRole) -> admin_pb2.AccessFileRole:
    return admin_pb2.AccessFileRole(
        name=one.name,
        built_in=one.name in BUILT_IN,
        publish=one.publish,
        subscribe=one.subscribe,
        groups=one.groups,
        allow=sorted(one.allow),
    )
