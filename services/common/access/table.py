"""AccessTable: the users of one reading of a file."""

from collections.abc import Iterable, Mapping

from tandemmq.common.access.principal import Principal
from tandemmq.common.access.roles import AccessRole


class AccessTable:
    """Users by name and by certificate."""

    def __init__(self, principals: Iterable[Principal], roles: Mapping[str, AccessRole]) -> None:
        self.principals: dict[str, Principal] = {one.name: one for one in principals}
        self.roles = roles
        """Own roles and built-in ones."""
        self.by_certificate = {one.certificate: one for one in self.principals.values() if one.certificate}
        self._secrets = sorted({one.secret for one in self.principals.values() if one.secret})

    def stand_in(self, number: int) -> str | None:
        """A hash to compare with the secret of a user that there is not, so that it takes as long as for one that is.

        The same number gets the same hash: a name's cost does not change from try to try. None: nobody has a secret.
        """
        return self._secrets[number % len(self._secrets)] if self._secrets else None
