"""Finds tests that assert nothing: whatever the code does, they pass.

A test asserts if it has `assert`, raises AssertionError, or calls what `ASSERTING` names; or if it calls a function of
the tests' own modules that asserts, itself or through others. Of a class, the methods that are called count where the
class is made in the same function. What a fixture or an imported package does is not looked at.
"""

import ast
from pathlib import Path
from typing import NamedTuple

ASSERTING = {"pytest.raises", "pytest.warns", "pytest.fail", "expect", "run_state_machine_as_test"}
"""Calls that fail a test when something is not as it should be; `expect` is Playwright's."""

Function = ast.FunctionDef | ast.AsyncFunctionDef


class Name(NamedTuple):
    """A function, a class, or a method as `Class.method`, of a module."""

    module: str
    name: str


class Assertions:
    """Knows of every function under a directory of tests whether it asserts."""

    def __init__(self, root: Path) -> None:
        """`root`: the package of the tests; others import from it by its name."""
        self._functions: dict[Name, Function] = {}
        self._classes: set[Name] = set()
        self._imported: dict[Name, Name] = {}
        self._paths: dict[str, Path] = {}
        for path in sorted(root.rglob("*.py")):
            module = ".".join(path.relative_to(root.parent).with_suffix("").parts)
            self._paths[module] = path
            self._read(module, ast.parse(path.read_text()), root.name)
        called = {name: self._called(name) for name in self._functions}
        self._asserting = {name for name, function in self._functions.items() if asserts_itself(function)}
        before = -1
        while before != len(self._asserting):
            before = len(self._asserting)
            self._asserting |= {name for name, others in called.items() if not others.isdisjoint(self._asserting)}

    def silent(self) -> list[str]:
        """The tests that assert nothing: `path:line name`."""
        return [
            f"{self._paths[name.module]}:{function.lineno} {name.name}"
            for name, function in self._functions.items()
            if name.name.rpartition(".")[2].startswith("test_") and name not in self._asserting
        ]

    def _read(self, module: str, tree: ast.Module, package: str) -> None:
        for node in tree.body:
            if isinstance(node, Function):
                self._functions[Name(module, node.name)] = node
            elif isinstance(node, ast.ClassDef):
                self._classes.add(Name(module, node.name))
                methods = [part for part in node.body if isinstance(part, Function)]
                self._functions |= {Name(module, f"{node.name}.{method.name}"): method for method in methods}
        for line in ast.walk(tree):
            if isinstance(line, ast.ImportFrom) and line.module and line.module.split(".")[0] == package:
                for alias in line.names:
                    self._imported[Name(module, alias.asname or alias.name)] = Name(line.module, alias.name)

    def _called(self, name: Name) -> set[Name]:
        names, attributes = calls(self._functions[name])
        called = {self._resolved(Name(name.module, one)) for one in names}
        made = {one for one in called if one in self._classes}
        if "." in name.name:  # a method may call others of its class
            made.add(Name(name.module, name.name.partition(".")[0]))
        return called | {Name(one.module, f"{one.name}.{part}") for one in made for part in attributes | {"__init__"}}

    def _resolved(self, name: Name) -> Name:
        while name in self._imported and name not in self._functions and name not in self._classes:
            name = self._imported[name]
        return name


def asserts_itself(function: Function) -> bool:
    """Whether there is an assertion in it, functions inside it included."""
    return any(
        isinstance(node, ast.Assert)
        or (isinstance(node, ast.Raise) and node.exc is not None and "AssertionError" in ast.unparse(node.exc))
        or (isinstance(node, ast.Call) and dotted(node.func) in ASSERTING)
        for node in ast.walk(function)
    )


def dotted(called: ast.expr) -> str:
    """`name` or `module.name`; nothing for what is neither."""
    if isinstance(called, ast.Attribute) and isinstance(called.value, ast.Name):
        return f"{called.value.id}.{called.attr}"
    return called.id if isinstance(called, ast.Name) else ""


def calls(function: Function) -> tuple[set[str], set[str]]:
    """What it calls: names, and the last parts of what has a dot."""
    called = [node.func for node in ast.walk(function) if isinstance(node, ast.Call)]
    names = {one.id for one in called if isinstance(one, ast.Name)}
    return names, {one.attr for one in called if isinstance(one, ast.Attribute)}
