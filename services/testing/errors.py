"""What goes wrong with a broker for tests."""

from tandemmq.common.errors import Kind, TandemError


class BrokerNotStarted(TandemError):
    """The broker did not start, or is not running; the message has its last words."""

    kind = Kind.UNNAMED


class NameTaken(TandemError):
    """A topic or group that was to be made is there already."""

    kind = Kind.CONFLICT
    remedy = "leave the name out, and a new one is given; or make it once"
