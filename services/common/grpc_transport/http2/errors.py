"""Error codes of HTTP/2 (RFC 9113, section 7), and the two ways in which a peer can be at fault."""

from enum import IntEnum


class ErrorCode(IntEnum):
    """What RST_STREAM and GOAWAY say (RFC 9113, section 7)."""

    NO_ERROR = 0x0
    PROTOCOL_ERROR = 0x1
    INTERNAL_ERROR = 0x2
    FLOW_CONTROL_ERROR = 0x3
    SETTINGS_TIMEOUT = 0x4
    STREAM_CLOSED = 0x5
    FRAME_SIZE_ERROR = 0x6
    REFUSED_STREAM = 0x7
    CANCEL = 0x8
    COMPRESSION_ERROR = 0x9
    CONNECT_ERROR = 0xA
    ENHANCE_YOUR_CALM = 0xB
    INADEQUATE_SECURITY = 0xC
    HTTP_1_1_REQUIRED = 0xD


class ConnectionFault(Exception):
    """The connection cannot go on (RFC 9113, section 5.4.1): GOAWAY with `code`, then it is closed."""

    def __init__(self, code: ErrorCode, reason: str) -> None:
        super().__init__(reason)
        self.code = code
        self.reason = reason
        """A short text for GOAWAY's debug data and the log; nothing secret."""


class StreamFault(Exception):
    """One stream cannot go on (RFC 9113, section 5.4.2): RST_STREAM with `code`; the others are not touched."""

    def __init__(self, code: ErrorCode, reason: str) -> None:
        super().__init__(reason)
        self.code = code
        self.reason = reason
