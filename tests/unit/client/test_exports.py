"""What `tandemmq.client` has: everything under its name, loaded when it is asked for."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import tandemmq.client


def typed_names() -> dict[str, tuple[str, ...]]:
    """What checkers of types see, by module."""
    tree = ast.parse(Path(tandemmq.client.__file__).read_text())
    blocks = [one for one in tree.body if isinstance(one, ast.If) and ast.unparse(one.test) == "TYPE_CHECKING"]
    imports = [one for block in blocks for one in block.body if isinstance(one, ast.ImportFrom)]
    return {str(one.module): tuple(name.name for name in one.names) for one in imports}


def test_what_is_typed_is_what_is_there() -> None:
    homes = vars(tandemmq.client)["_HOMES"]
    assert homes == typed_names()
    assert sorted(name for names in homes.values() for name in names) == tandemmq.client.__all__


@pytest.mark.parametrize("name", tandemmq.client.__all__)
def test_each_name_is_there(name: str) -> None:
    assert getattr(tandemmq.client, name).__name__ == name
    assert name in dir(tandemmq.client)


def test_a_name_that_is_not_there_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'Produser'") as raised:
        vars(tandemmq.client)["__getattr__"]("Produser")
    assert raised.value.obj is tandemmq.client, "so that Python can say which name is meant"


@pytest.mark.parametrize(
    ("program", "unwanted"),
    [
        ("import tandemmq.client", {"grpc", "asyncio", "google.protobuf"}),
        ("from tandemmq.client import StoreClient", {"tandemmq.client.aio_producer", "tandemmq.client.cluster"}),
        ("from tandemmq.client import Identity", {"grpc", "asyncio"}),
    ],
)
def test_a_name_loads_what_it_needs(program: str, unwanted: set[str]) -> None:
    told = f"{program}; import sys; print(' '.join(sys.modules))"
    done = subprocess.run([sys.executable, "-c", told], capture_output=True, text=True, check=True)
    assert not unwanted & set(done.stdout.split())


def test_modules_that_have_names_are_attributes_too() -> None:
    told = "import tandemmq.client; print(tandemmq.client.errors.Refused.__name__)"
    done = subprocess.run([sys.executable, "-c", told], capture_output=True, text=True, check=True)
    assert done.stdout == "Refused\n"
