"""The file access.signing.toml: secrets by user, or an error; what becomes of it while a service runs."""

from pathlib import Path

import pytest

from tandemmq.common.access.errors import AccessFileError
from tandemmq.common.access.signing import SigningSecrets


class HandClock:
    """Seconds that go by when the test says so."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def written(path: Path, text: str, mode: int = 0o600) -> Path:
    path.write_text(text)
    path.chmod(mode)
    return path


def test_without_a_file_nobody_has_one(tmp_path: Path) -> None:
    assert SigningSecrets(tmp_path / "access.signing.toml").get("alice") is None


@pytest.mark.parametrize(
    "text", ["[secrets", "[secrets]\nalice = 7", '[secrets]\nalice = ""', "secrets = 1", '[secrets]\nalice = "a'],
)  # fmt: skip
def test_what_cannot_be_is_refused_by_name(tmp_path: Path, text: str) -> None:
    path = written(tmp_path / "access.signing.toml", text)
    with pytest.raises(AccessFileError, match=r"access\.signing\.toml"):
        SigningSecrets(path)


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o666])
def test_one_that_others_can_read_is_refused(tmp_path: Path, mode: int) -> None:
    path = written(tmp_path / "access.signing.toml", '[secrets]\nalice = "s"\n', mode)
    with pytest.raises(AccessFileError, match="by others"):
        SigningSecrets(path)


def test_while_a_service_runs_the_last_good_ones_stay(tmp_path: Path) -> None:
    path, clock = written(tmp_path / "access.signing.toml", '[secrets]\nalice = "one"\n'), HandClock()
    secrets = SigningSecrets(path, clock)
    written(path, "[secrets")
    clock.now = 2.0
    assert secrets["alice"] == "one"
    written(path, '[secrets]\nalice = "another one"\n')
    clock.now = 4.0
    assert secrets["alice"] == "another one"
