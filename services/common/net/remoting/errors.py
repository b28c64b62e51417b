"""Why a peer gives no answer."""

from tandemmq.common.errors import Kind, TandemError


class PeerGone(TandemError):
    """The connection closed before the answer came, or could not be made."""

    kind = Kind.AWAY


class PeerSilent(TandemError):
    """No answer came in time."""

    kind = Kind.AWAY


class TooMuchAsked(TandemError):
    """More requests wait for a peer's answer than may."""

    kind = Kind.EXHAUSTED
