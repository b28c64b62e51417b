"""What can be wrong with bytes of the remoting protocol, or with a command that shall become bytes."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from tandemmq.common.errors import Kind, TandemError

if TYPE_CHECKING:
    from tandemmq.common.wire.remoting.frames import RemotingFrame


class BadRemotingFrame(TandemError):
    """The bytes are no frame of the protocol. Nothing after them can be read: the connection has to be closed."""

    kind = Kind.INVALID

    def __init__(self, message: str, frames: "Sequence[RemotingFrame]" = ()) -> None:
        """`frames`: whole ones that came in the same bytes before."""
        super().__init__(message)
        self.frames = tuple(frames)


class BadHeader(TandemError):
    """A frame's header cannot be read. RocketMQ closes such a connection too."""

    kind = Kind.INVALID


class BadField(TandemError):
    """A field of a request's header is missing, or is not what it should be. RocketMQ answers SYSTEM_ERROR."""

    kind = Kind.INVALID


class NotEncodable(TandemError):
    """A command has no form in the wanted serialization: a number that is too large, a text that is too long."""

    kind = Kind.INVALID
