"""Command: what a frame says, whatever its serialization.

A request and a response have the same form; bit 0 of `flag` tells them apart. `opaque` joins a response to its request:
each side of a connection counts its own requests, so the same number may be under way in both directions.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tandemmq.common.wire.remoting.frames import Serialization
from tandemmq.common.wire.remoting.versions import OUR_VERSION

RESPONSE = 1
"""Bit of `flag`: it is the answer to a request."""
ONE_WAY = 2
"""Bit of `flag`: a request that is not answered, not even with an error."""

Body = bytes | bytearray | memoryview


@dataclass(slots=True)
class Command:
    """One request or response."""

    code: int
    """A RequestCode, or a ResponseCode in a response. int32."""
    opaque: int = 0
    """The number of the request. int32; counts on below zero."""
    flag: int = 0
    """RESPONSE and ONE_WAY. int32."""
    fields: Mapping[str, str] | None = None
    """extFields: typed values, written as texts. None where the sender has none at all."""
    body: Body = b""
    remark: str | None = None
    """What went wrong, for people; in answers to pulls the status."""
    language: str = "JAVA"
    """Of the sender's program, by RocketMQ's name. Responses of a RocketMQ server say JAVA, so ours do."""
    version: int = OUR_VERSION
    """The ordinal of the sender's release; see versions.py."""
    serialization: Serialization = Serialization.JSON
    """Of the frame in which it came; a response goes back in the same."""
    scanned: tuple[Any, ...] | None = None
    """The values of a request's fields where the header was scanned (see header_scan.py); then `fields` is None."""

    @property
    def is_response(self) -> bool:
        """Whether it answers a request."""
        return bool(self.flag & RESPONSE)

    def answer(
        self,
        code: int = 0,
        fields: Mapping[str, str] | None = None,
        body: Body = b"",
        remark: str | None = None,
    ) -> "Command":
        """The response to this request, in its serialization."""
        return Command(code, self.opaque, RESPONSE, fields, body, remark, serialization=self.serialization)
