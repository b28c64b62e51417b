"""The root of all errors that TandemMQ raises on purpose.

An error knows how it is told to a caller: the gRPC code, and the status that a RocketMQ client would have seen. The
gRPC layer (`guard.py`) turns it into exactly that; nothing else has to know both worlds.
"""

from typing import ClassVar


class TandemError(Exception):
    """A failure with a name, a message for people, and a place in both protocols.

    Subclasses set the class attributes; the message is the exception's text and must be safe to show to a client.
    """

    grpc_code: ClassVar[str] = "INTERNAL"
    """Name of a `grpc.StatusCode`."""

    rocketmq_status: ClassVar[str] = "UNKNOWN_ERROR"
    """Name of a RocketMQ `PutMessageStatus` or `GetMessageStatus`; sent as trailing metadata `rocketmq-status`."""

    remedy: str | None = None
    """What the reader can do about it: one sentence, or None. A class attribute or set by the constructor."""

    def __init__(self, message: str = "", *, remedy: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        if remedy is not None:
            self.remedy = remedy

    def explain(self) -> str:
        """Message and remedy in one line, for a client or a terminal."""
        message = str(self) or type(self).__name__
        return f"{message} ({self.remedy})" if self.remedy else message
