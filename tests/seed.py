"""The seed of this run: one number, drawn once, from which everything comes that a test draws at random.

``TANDEM_SEED`` in the environment replays a run. A number that was drawn is put there, so that processes which this one
starts (pytest's workers among them) have the same.
"""

import ast
import os
import random
from functools import cache
from pathlib import Path


def seed() -> int:
    """``TANDEM_SEED``, drawn where it is not set."""
    drawn = os.environ.get("TANDEM_SEED") or str(random.SystemRandom().randrange(1 << 32))
    os.environ["TANDEM_SEED"] = drawn
    return int(drawn)


_REPOSITORY = Path(__file__).resolve().parents[1]

SEED = seed()
"""Read when the module is imported. A test that uses it under this name is marked ``seeded``."""


@cache
def what_draws(path: Path) -> frozenset[str]:
    """What in a module uses SEED: functions, fixtures and values that name it, or that name one of those.

    What is imported from another module of the tests counts too.
    """
    uses = dict[str, set[str]]()
    for statement in ast.parse(path.read_text()).body:
        named = _names_in(statement)
        match statement:
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                asked_for = {node.arg for node in ast.walk(statement) if isinstance(node, ast.arg)}
                uses[statement.name] = named | asked_for
            case ast.Assign() | ast.AnnAssign():
                targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
                uses |= dict.fromkeys(_names_in(*targets), named)
            case ast.ImportFrom(module=str(module)) if module.startswith("tests."):
                drawing_there = _what_draws_in(module)
                uses |= {one.asname or one.name: {"SEED"} for one in statement.names if one.name in drawing_there}
    drawing = {"SEED"}
    while found := {name for name, used in uses.items() if used & drawing} - drawing:
        drawing |= found
    return frozenset(drawing)


def _what_draws_in(module: str) -> frozenset[str]:
    path = _REPOSITORY.joinpath(*module.split(".")).with_suffix(".py")
    return what_draws(path) if path != Path(__file__).resolve() and path.exists() else frozenset()


def draws(path: Path, name: str) -> bool:
    """Whether a test uses the seed of its module; each does where the module's marks do."""
    return not what_draws(path).isdisjoint({name, "pytestmark"})


def _names_in(*nodes: ast.AST) -> set[str]:
    return {found.id for node in nodes for found in ast.walk(node) if isinstance(found, ast.Name)}
