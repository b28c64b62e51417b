"""Frames to commands and commands to frames, whatever the serialization."""

from tandemmq.common.wire.remoting import binary_header, json_header
from tandemmq.common.wire.remoting.command import Command
from tandemmq.common.wire.remoting.frames import RemotingFrame, Serialization, encode_frame


def decode(frame: RemotingFrame) -> Command:
    """What the frame says. Raises BadHeader."""
    if frame.serialization is Serialization.ROCKETMQ:
        return binary_header.decode(frame.header, frame.body)
    return json_header.decode(frame.header, frame.body)


def encode(command: Command) -> bytes:
    """The whole frame, in the command's serialization. Raises NotEncodable."""
    form = binary_header if command.serialization is Serialization.ROCKETMQ else json_header
    return encode_frame(command.serialization, form.encode(command), command.body)
