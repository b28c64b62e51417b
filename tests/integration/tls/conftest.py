"""Who signs what, once for all tests here."""

from pathlib import Path
from typing import NamedTuple

import pytest

from tests.certificates import Authority, Certificate


class Certificates(NamedTuple):
    """Ours, and those of somebody else."""

    ours: Authority
    theirs: Authority
    node: Certificate
    caller: Certificate
    stranger: Certificate
    """Signed by the other authority."""


@pytest.fixture(scope="session")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    directory: Path = tmp_path_factory.mktemp("certificates")
    ours, theirs = Authority(directory, "ours"), Authority(directory, "theirs")
    return Certificates(ours, theirs, ours.issue("node"), ours.issue("caller"), theirs.issue("stranger"))
