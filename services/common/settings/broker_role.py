"""The roles that RocketMQ's setting `brokerRole` knows."""

from enum import StrEnum


class BrokerRole(StrEnum):
    """What a broker is to its replicas, as its settings say; a promotion outdoes them."""

    ASYNC_MASTER = "ASYNC_MASTER"
    SYNC_MASTER = "SYNC_MASTER"
    SLAVE = "SLAVE"
