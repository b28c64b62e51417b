"""What keeps a node from running.

::

    NodeError
    ├── BadPlan       options that do not go together
    ├── PortTaken     somebody listens on a port that the node wants
    ├── NotStarted    a service ended before it ever served
    │   └── RefusedSettings  since its settings are wrong
    └── GivenUp       a service died again and again
"""

from tandemmq.common.errors import Kind, TandemError


class NodeError(TandemError):
    """A node cannot run, or no longer."""

    kind = Kind.AWAY


class PortTaken(NodeError):
    """Somebody listens on a port that the node wants."""


class BadPlan(NodeError):
    """The node cannot be run with these options."""

    kind = Kind.MISCONFIGURED


class NotStarted(NodeError):
    """A service ended before it ever served; the message has its last words."""


class RefusedSettings(NotStarted):
    """A service ended before it ever served, since its settings are wrong."""

    kind = Kind.MISCONFIGURED


class GivenUp(NodeError):
    """A service died again and again."""

    remedy = "its last lines in the log say why"
