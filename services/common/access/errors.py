"""What can go wrong with access: refusals of callers, and faults of the file."""

from typing import ClassVar

from tandemmq.common.errors import Kind, TandemError


class AccessRefused(TandemError):
    """A caller may not do what it wants."""

    kind = Kind.NOT_PERMITTED
    reason: ClassVar[str] = "denied"
    """One word for the metrics."""
    user = ""
    """Who called, or claimed to be; empty where nobody said."""

    def __init__(self, message: str, *, remedy: str | None = None, user: str = "") -> None:
        super().__init__(message, remedy=remedy)
        self.user = user


class Unauthenticated(AccessRefused):
    """Nobody knows who calls: no credentials, or wrong ones."""

    kind = Kind.UNAUTHENTICATED
    reason = "unauthenticated"
    remedy = (
        "give a user and a secret of the server's accessFile: TANDEM_USER and TANDEM_SECRET_FILE for commands, "
        "serviceUser and serviceSecretFile for services"
    )


class TooManyAttempts(Unauthenticated):
    """Wrong secrets came too often; this one was not even looked at."""

    reason = "too_many_attempts"

    def __init__(self, message: str, retry_after: float, user: str = "") -> None:
        """`retry_after`: seconds until it is worth trying again."""
        remedy = f"try again in {max(1, round(retry_after))} s, with the right secret"
        super().__init__(message, remedy=remedy, user=user)
        self.retry_after = retry_after


class PermissionDenied(AccessRefused):
    """It is known who calls, and that this user may not do that."""


class AccessFileError(TandemError):
    """The access file cannot be read, or says something that it may not.

    The message names file, line (where it can be known) and key.
    """

    kind = Kind.MISCONFIGURED


class MissingRule(TandemError):
    """A method of a service has no rule that says who may call it, or a rule has no method."""

    remedy = "this is a fault of the program: each method needs an entry in the rules given to ServiceHost.add"
