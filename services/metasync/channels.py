"""Whom the metadata service calls: the node's store, and on a slave the master's metadata service."""

from tandemmq.common.calling.client_channel import Dialer
from tandemmq.metasync.settings import MetasyncSettings


def store_dialer(settings: MetasyncSettings) -> Dialer:
    """For both of the store's ports. Raises UnreadableCertificate, UnreadableSecret."""
    return Dialer(settings, settings.store_tls_trust_cert_path, "storeTlsTrustCertPath")


def master_dialer(settings: MetasyncSettings) -> Dialer:
    """For the master's metadata service. Raises UnreadableCertificate, UnreadableSecret."""
    return Dialer(settings, settings.metasync_tls_trust_cert_path, "metasyncTlsTrustCertPath")
