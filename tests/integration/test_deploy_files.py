"""Sample settings and systemd units: what they name is there, and a wrong setting is not tried again and again."""

import configparser
import re
from pathlib import Path

import pytest

from tandemmq.cli.commands import CommandsByName
from tests.integration.test_cli import tandem

DEPLOY = Path(__file__).resolve().parents[2] / "deploy"
OF_A_NODE = ("store", "replicator", "metasync")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "service"),
    [
        *((name, service) for name in ("single", "master", "slave") for service in OF_A_NODE),
        ("admin", "admin"),
        ("single-admin", "admin"),
    ],
)
def test_settings_are_such(name: str, service: str) -> None:
    shown = tandem("settings", "--service", service, "--config", str(DEPLOY / "conf" / f"{name}.conf"), "--json")
    assert shown.code == 0, shown.err
    assert any(one["origin"]["layer"] == "file" for one in shown.document["settings"])


@pytest.mark.parametrize("path", sorted((DEPLOY / "systemd").glob("*.service")), ids=lambda path: path.name)
def test_units_start_a_service_and_give_wrong_settings_up(path: Path) -> None:
    unit = configparser.ConfigParser(interpolation=None)
    unit.optionxform = str  # type: ignore[assignment,method-assign]
    unit.read(path)
    program, verb, service, option, config = unit["Service"]["ExecStart"].split()
    assert program.endswith("/tandem")
    assert path.name == f"tandem-{service}.service"
    assert service in CommandsByName()[verb].commands
    assert (option, Path(config).suffix) == ("--config", ".conf")
    assert unit["Service"]["RestartPreventExitStatus"] == "2"
    assert unit["Service"]["Restart"] == "always"


@pytest.mark.parametrize("name", ["README.md", "CHANGELOG.md", "docs/install.md", "deploy/Dockerfile"])
def test_commands_that_are_shown_open_no_port_to_the_network(name: str) -> None:
    """There is no access file in a new container: whoever reaches it may do everything."""
    published = re.findall(r"--publish ([\d.:]+)", (DEPLOY.parent / name).read_text())
    assert published
    assert all(one.startswith("127.0.0.1:") for one in published), published
