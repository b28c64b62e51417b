"""Frames to commands and commands to frames, whatever the serialization."""

from tandemmq.common.wire.remoting import binary_header, json_header
from tandemmq.common.wire.remoting.command import Command
from tandemmq.common.wire.remoting.frames import RemotingFrame, Serialization, encode_frame, encode_head


def decode(frame: RemotingFrame) -> Command:
    """What the frame says. Raises BadHeader."""
    if frame.serialization is Serialization.ROCKETMQ:
        return binary_header.decode(frame.header, frame.body)
    return json_header.decode(frame.header, frame.body)


def encode(command: Command) -> bytes:
    """The whole frame, in the command's serialization. Raises NotEncodable."""
    return encode_frame(command.serialization, _header(command), command.body)


def encode_ahead(command: Command) -> bytes:
    """The frame without its body, which follows. Raises NotEncodable."""
    return encode_head(command.serialization, _header(command), len(command.body))


def _header(command: Command) -> bytes:
    if command.serialization is Serialization.ROCKETMQ:
        return binary_header.encode(command)
    return json_header.encode(command)
