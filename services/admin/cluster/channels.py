"""How the other services are reached: the one place that says which certificates count for which."""

from dataclasses import replace

from tandemmq.admin.settings import AdminSettings
from tandemmq.common.calling.client_channel import LIMITS, Dialer

_LIMITS = replace(LIMITS, max_receive_message_length=64 << 20)
"""The tables of a large cluster, and messages that are browsed."""


def make_dialers(settings: AdminSettings) -> dict[str, Dialer]:
    """By service. Raises UnreadableCertificate, UnreadableSecret."""
    trusted = {
        "store": (settings.store_tls_trust_cert_path, "storeTlsTrustCertPath"),
        "replicator": (settings.replicator_tls_trust_cert_path, "replicatorTlsTrustCertPath"),
        "metasync": (settings.metasync_tls_trust_cert_path, "metasyncTlsTrustCertPath"),
    }
    return {service: Dialer(settings, path, name, limits=_LIMITS) for service, (path, name) in trusted.items()}
