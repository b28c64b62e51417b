"""What goes wrong with a broker for tests."""

from tandemmq.common.errors import Kind, TandemError


class BrokerNotStarted(TandemError):
    """The broker did not start, or is not running; the message has its last words."""

    kind = Kind.UNNAMED
