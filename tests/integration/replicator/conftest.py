"""Followers of this directory run beside their peers in one event loop, on a machine that may be slow."""

import pytest

from tandemmq.replicator.slave import join, slave


@pytest.fixture(autouse=True)
def _patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """Peers that live answer in the end; those that do not are refused connections, which takes no time."""
    monkeypatch.setattr(join, "JOIN_SECONDS", 30.0)
    monkeypatch.setattr(slave, "_STORE_SECONDS", 30.0)
