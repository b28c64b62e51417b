"""Who may reach the store's internal port, on which the log is replicated and masters are made."""

from tandemmq.common.calling.addresses import is_loopback
from tandemmq.common.settings.settings import Origin, SettingsError


class ExposedInternalPort(SettingsError):
    """The internal port would answer everybody on a network, and nothing says that this is meant."""

    remedy = (
        "Keep it at 127.0.0.1, or let callers show certificates (tlsServerTrustCertPath), or say with "
        "internalOpen=true that the network is private."
    )


def check_exposure(host: str, origin: Origin, *, asks_for_certificates: bool, declared_private: bool) -> None:
    """Beyond loopback the port needs one or the other. Raises ExposedInternalPort."""
    if not (asks_for_certificates or declared_private or is_loopback(host)):
        raise ExposedInternalPort(
            f"internalHost={host} ({origin.place}): whoever reaches that address could replicate, promote and fence "
            "this store"
        )
