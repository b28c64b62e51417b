"""Whom the replicator calls: the node's store, and other nodes' replicators."""

import grpc

from tandemmq.common.calling.client_channel import Dialer
from tandemmq.common.grpc_transport import Limits
from tandemmq.replicator.settings import ReplicatorSettings

_LIMITS = Limits(keepalive_seconds=5.0, keepalive_timeout_seconds=10.0, handshake_seconds=5.0)


def store_channel(settings: ReplicatorSettings) -> grpc.aio.Channel:
    """A channel to the store's internal port. Close it at the end. Raises UnreadableCertificate, UnreadableSecret."""
    dialer = Dialer(settings, settings.store_tls_trust_cert_path, "storeTlsTrustCertPath", limits=_LIMITS)
    return dialer.channel(settings.store_address)


def replicator_channel(settings: ReplicatorSettings, address: str) -> grpc.aio.Channel:
    """A channel to another node's replicator. Close it at the end. Raises UnreadableCertificate, UnreadableSecret.

    With TLS if it has its own trust file, or if HA has TLS: then with what HA trusts.
    """
    trusted, setting, tls = settings.replicator_tls_trust_cert_path, "replicatorTlsTrustCertPath", True
    if trusted is None:
        trusted, setting, tls = settings.ha_tls_trust_cert_path, "haTlsTrustCertPath", settings.ha_tls_enable
    return Dialer(settings, trusted, setting, tls=tls, limits=_LIMITS).channel(address)
