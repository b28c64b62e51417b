"""Where services listen, unless their settings say otherwise."""

CONSOLE = 8080
STORE = 8081
"""Clients: ours, and official ones of RocketMQ 5. A gateway has the same."""
METASYNC = 8082
ADMIN = 8083
REPLICATOR = 8084
NAMES_GRPC = 8085

INTERNAL = 9081
"""The store's, for the node's own services."""

STORE_METRICS = 9101
REPLICATOR_METRICS = 9102
METASYNC_METRICS = 9103
ADMIN_METRICS = 9104
GATEWAY_METRICS = 9105
NAMES_METRICS = 9106

NAMES = 9876
"""As RocketMQ's."""
REMOTING = 10911
"""As RocketMQ's, with the VIP channel two below it."""
HA = 10912
"""As RocketMQ's."""
