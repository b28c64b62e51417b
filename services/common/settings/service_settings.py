"""Which settings the services of a node have, so that one broker.conf serves them all.

A key that another service has passes in silence, and so does what the store accepts without effect; a key that nobody
has stays an error. What every service has (`ServerSettings`) is left out.

A key that every service has cannot be given to all in one file if it is a port: leave `grpcPort` and `metricsPort` out
of a shared file, their defaults differ.
"""

from collections.abc import Mapping
from types import MappingProxyType

from tandemmq.common.settings import setting_names

SERVICE_SETTINGS: Mapping[str, frozenset[str]] = MappingProxyType(
    {service: frozenset(names.split()) for service, names in setting_names.NAMES.items()}
)
"""The names of a service's own settings, by service."""

WITHOUT_EFFECT = frozenset(setting_names.WITHOUT_EFFECT.split())
"""RocketMQ's settings that the store accepts without effect; `StoreSettings.without_effect` has the reasons."""

KNOWN_TO_A_SERVICE = WITHOUT_EFFECT.union(*SERVICE_SETTINGS.values())
"""Every key that a broker.conf may hold, but for what all services have."""
