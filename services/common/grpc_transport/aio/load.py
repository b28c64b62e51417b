"""Load: what a server holds for its peers, and what it did to those who cost too much; for metrics."""

from dataclasses import dataclass
from typing import NamedTuple


@dataclass
class Told:
    """How often, since the start."""

    refused: int = 0
    """Calls: there was no room for their answers or requests."""
    slow_calls: int = 0
    """Calls whose callers did not go on reading or sending."""
    slow_connections: int = 0
    """Connections that were closed as their sockets took nothing."""
    misbehaved: int = 0
    """Connections that were ended with ENHANCE_YOUR_CALM: floods, and frames without end."""


class Load(NamedTuple):
    """A server's load."""

    held: int
    """Bytes that are held for peers: answers not taken, requests not complete or not handled, streams, connections."""
    budget: int
    """Bytes that may be."""
    told: Told
    laned: int = 0
    """Calls that lanes took, since the start."""
