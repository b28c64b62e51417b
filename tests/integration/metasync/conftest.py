"""A master and a slave, as processes."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.metasync_process import MetasyncProcess


@pytest.fixture
def master(tmp_path: Path) -> Iterator[MetasyncProcess]:
    """A metadata service that is a master."""
    with MetasyncProcess(tmp_path / "master") as process:
        yield process


@pytest.fixture
def slave(master: MetasyncProcess, tmp_path: Path) -> Iterator[MetasyncProcess]:
    """One that follows it, ten times a second."""
    settings = {"broker_role": "SLAVE", "metasync_master_address": master.address}
    with MetasyncProcess(tmp_path / "slave", **settings) as process:
        yield process
