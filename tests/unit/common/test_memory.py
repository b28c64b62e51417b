"""How much memory a process may use: the least that machine and control groups say."""

from pathlib import Path

import pytest

from tandemmq.common.processes.memory import machine_memory, usable_memory
from tandemmq.common.serving.grpc_server import memory_budget
from tandemmq.common.settings.server_settings import ServerSettings

GIB = 1 << 30


def groups(directory: Path, own: str, **limits: str) -> tuple[Path, Path]:
    """A tree of control groups with limits by their files (`__` for `/`), and the file that says which is ours."""
    root = directory / "cgroup"
    for name, text in limits.items():
        file = root / name.replace("__", "/").replace("memory_max", "memory.max").replace(
            "memory_limit", "memory.limit_in_bytes"
        )
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"{text}\n")
    place = directory / "own"
    place.write_text(own)
    return root, place


@pytest.mark.parametrize(
    ("own", "limits", "expected"),
    [
        pytest.param("0::/\n", {}, 8 * GIB, id="no limits"),
        pytest.param("0::/\n", {"memory_max": str(GIB)}, GIB, id="a container with a namespace of its own"),
        pytest.param("0::/a/b\n", {"a__memory_max": str(2 * GIB), "a__b__memory_max": "max"}, 2 * GIB, id="a parent's"),
        pytest.param("0::/a/b\n", {"a__memory_max": str(2 * GIB), "a__b__memory_max": str(GIB)}, GIB, id="the least"),
        pytest.param("4:memory:/x\n2:cpu:/y\n", {"memory__x__memory_limit": str(GIB)}, GIB, id="version 1"),
        pytest.param("0::/\n", {"memory_max": str(99 * GIB)}, 8 * GIB, id="more than there is"),
        pytest.param("0::/../../elsewhere\n", {"memory_max": "max"}, 8 * GIB, id="another namespace"),
        pytest.param("nonsense", {"memory_max": "nonsense"}, 8 * GIB, id="what cannot be read"),
    ],
)
def test_the_least_limit_counts(tmp_path: Path, own: str, limits: dict[str, str], expected: int) -> None:
    root, place = groups(tmp_path, own, **limits)
    assert usable_memory(lambda: 8 * GIB, root, place) == expected


def test_without_control_groups_it_is_the_machines(tmp_path: Path) -> None:
    assert usable_memory(cgroups=tmp_path / "none", own=tmp_path / "none") == machine_memory()


def test_a_port_has_a_32nd_of_it_or_what_is_set_and_room_for_a_few_messages() -> None:
    assert memory_budget(ServerSettings(), lambda: 32 * GIB) == GIB
    assert memory_budget(ServerSettings(), lambda: GIB) == 64 << 20
    assert memory_budget(ServerSettings(grpc_memory_budget=100 << 20), lambda: GIB) == 100 << 20
    assert memory_budget(ServerSettings(grpc_memory_budget=1, grpc_max_message_size=32 << 20), lambda: GIB) == 128 << 20
