"""What the command line loads to do little."""

import json
import subprocess
import sys

import pytest
import typer.core
import typer.main

from tandemmq.cli.main import _SELDOM, app

PROGRAM = """
import json, sys
from tandemmq.cli.main import main
sys.argv = ["tandem", *sys.argv[1:]]
try:
    main()
except SystemExit:
    pass
print(json.dumps(sorted(sys.modules)))
"""


def loaded_by(*words: str) -> set[str]:
    done = subprocess.run([sys.executable, "-c", PROGRAM, *words], capture_output=True, text=True, check=True)
    return set(json.loads(done.stdout.splitlines()[-1]))


def test_the_version_is_told_without_a_command_and_without_what_commands_need() -> None:
    loaded = loaded_by("--version")
    assert not loaded & {"asyncio", "grpc", "google.protobuf", "numpy", "pydantic", "rich", "uvloop"}
    rooms = ("processes", "messaging", "files", "pair", "access", "nouns", "demo")
    assert not {name for name in loaded if name.startswith(tuple(f"tandemmq.cli.{room}" for room in rooms))}


def test_the_list_of_all_commands_is_told_without_what_they_need_when_they_run() -> None:
    assert not loaded_by("--help") & {
        "asyncio",
        "grpc",
        "google.protobuf",
        "numpy",
        "pydantic",
        "rich",
        "ssl",
        "uvloop",
    }


@pytest.mark.parametrize("command", ["up", "topic"])
def test_a_command_loads_its_own_module_only(command: str) -> None:
    loaded = loaded_by(command, "--help")
    assert not loaded & {"asyncio", "grpc", "google.protobuf", "numpy", "rich", "uvloop"}
    assert "tandemmq.cli.messaging.send" not in loaded


@pytest.mark.parametrize(
    "words",
    [
        ("send", "orders", "tea", "--count", "2"),
        ("topic", "list", "--limit", "3"),
        ("group", "list"),
        ("check",),
        ("check", "--lag-warning", "100", "--disk-warning", "85.5"),
        ("replica", "promote"),
    ],
)
def test_a_call_loads_neither_pydantic_nor_what_programs_with_asyncio_use(words: tuple[str, ...]) -> None:
    loaded = loaded_by(*words, "--address", "127.0.0.1:1")
    assert "grpc" in loaded, "it was called"
    assert not loaded & {"numpy", "pydantic", "rich", "typer._adapters", "uvloop", "prometheus_client"}
    tls = {"tandemmq.cli.talk.tls_diagnosis", "tandemmq.common.settings.server_settings"}
    assert not loaded & tls, "where nobody listens, TLS is not the reason"
    others = ("aio", "working", "producer", "consumer", "cluster", "holding", "attending", "background", "lingering")
    assert not {name for name in loaded if name.startswith(tuple(f"tandemmq.client.{one}" for one in others))}


def test_a_node_starts_without_pydantic() -> None:
    """Its processes begin when the command has been read."""
    loaded = loaded_by("up", "--data", "/etc/passwd", "--slave", "--port", "0")
    assert "tandemmq.node.processes" in loaded, "it was read"
    assert not loaded & {"grpc", "pydantic", "rich", "typer._adapters"}


def test_services_that_share_a_process_start_without_typer() -> None:
    program = "import json, sys, tandemmq.cli.processes.together; print(json.dumps(sorted(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert not set(json.loads(done.stdout)) & {"asyncio", "typer", "pydantic", "rich"}


@pytest.mark.parametrize(("command", "is_call"), [("send", True), ("serve", False)])
def test_a_call_collects_garbage_seldom_and_a_service_as_ever(command: str, is_call: bool) -> None:
    program = PROGRAM.replace("sorted(sys.modules)", "gc.get_threshold()").replace("import json", "import gc, json")
    done = subprocess.run([sys.executable, "-c", program, command, "-x"], capture_output=True, text=True, check=True)
    assert (json.loads(done.stdout.splitlines()[-1])[0] == _SELDOM) == is_call


def test_every_command_is_found_under_its_name() -> None:
    root = typer.main.get_command(app)
    assert isinstance(root, typer.core.TyperGroup)
    assert [command.name for command in root.commands.values()] == list(root.commands)
    assert "replica" in root.commands
    assert root.commands.get("nothing") is None
