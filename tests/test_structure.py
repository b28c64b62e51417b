"""The house rules, executed: who imports whom, how long things may get, what must be said, what must not be there."""

import ast
import gc
import importlib
import json
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from tests.assertions import Assertions
from tests.field_offsets import field_offsets

REPOSITORY = Path(__file__).resolve().parents[1]
SERVICES = REPOSITORY / "services"

FILE_LINES_MAX = 600
"""A module longer than this is two modules. Aim at 300."""

FUNCTION_LINES_MAX = 70
"""A function fits a screen; lines of its docstring do not count."""

LONG_FILES: dict[str, str] = {
    "services/common/grpc_transport/compiled/lane.py": "one class: all that it does shares the cursor of a read",
}
"""Exceptions to FILE_LINES_MAX: path -> reason."""

LONG_FUNCTIONS: dict[str, str] = {}
"""Exceptions to FUNCTION_LINES_MAX: `path:name` -> reason."""

SHARED_NAMES = {"Consumer", "Message", "Producer", "StoreClient", "Transaction"}
"""Class names that exist more than once: what users of `tandemmq.client` call the same, with asyncio and without."""

HEAVY_MODULES = {"lark", "numpy", "rich", "typer", "pytest", "pydantic"}
"""What a service must not import at its start: time to the first answer and idle memory are promises."""


pytestmark = pytest.mark.xdist_group("structure")


@pytest.fixture(scope="module", autouse=True)
def _trees_are_forgotten() -> Iterator[None]:
    gc.disable()  # it would go through millions of nodes again and again, none of which it could throw away
    yield
    gc.enable()
    tree_of.cache_clear()
    nodes_of.cache_clear()


def is_generated(path: Path) -> bool:
    return path.stem.endswith(("_pb2", "_pb2_grpc"))


@cache
def tree_of(path: Path) -> ast.Module:
    """A file's syntax tree. Most tests here want it: all of them take 400 MB, and seconds to make."""
    return ast.parse(path.read_text())


@cache
def nodes_of(path: Path) -> list[ast.AST]:
    """All nodes of a file's syntax tree: to walk it takes as long as to make it."""
    return list(ast.walk(tree_of(path)))


def sources(*roots: str) -> list[Path]:
    found = [path for root in roots for path in (REPOSITORY / root).rglob("*.py")]
    return sorted(path for path in found if not is_generated(path) and "__pycache__" not in path.parts)


def name_of(path: Path) -> str:
    return str(path.relative_to(REPOSITORY))


def tracked_files() -> list[Path]:
    """Files that git knows or would add; all files but the ignored kinds where there is no git."""
    command = ["git", "-C", str(REPOSITORY), "ls-files", "--cached", "--others", "--exclude-standard"]
    listing = subprocess.run(command, capture_output=True, text=True, check=False)
    if listing.returncode != 0:
        pytest.skip("not a git checkout")
    paths = (REPOSITORY / line for line in listing.stdout.splitlines())
    return [path for path in paths if path.is_file() and not path.is_symlink()]


def functions(path: Path) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    for node in nodes_of(path):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node


def body_lines(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    assert function.end_lineno is not None
    lines = function.end_lineno - function.lineno + 1
    first = function.body[0]
    if ast.get_docstring(function) is not None and first.end_lineno is not None:
        lines -= first.end_lineno - first.lineno + 1
    return lines


@pytest.mark.slow  # `make lint` looks too, and `make test` begins with it
def test_imports_go_one_way() -> None:
    command = [str(Path(sys.executable).with_name("lint-imports")), "--no-logo", "--no-cache"]
    outcome = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, check=False)
    assert outcome.returncode == 0, outcome.stdout + outcome.stderr


@pytest.mark.slow  # `make lint` looks too, and `make test` begins with it
def test_generated_code_is_fresh() -> None:
    command = [sys.executable, "tools/generate_protos.py", "--check"]
    outcome = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, check=False)
    assert outcome.returncode == 0, outcome.stdout + outcome.stderr


def test_files_are_short() -> None:
    paths = sources("services", "spark", "tools", "bench")
    lengths = {name_of(path): len(path.read_text().splitlines()) for path in paths}
    long = {name: lines for name, lines in lengths.items() if lines > FILE_LINES_MAX and name not in LONG_FILES}
    assert not long
    outdated = [name for name in LONG_FILES if lengths.get(name, 0) <= FILE_LINES_MAX]
    assert not outdated, "exceptions that are no longer needed"


def test_functions_fit_a_screen() -> None:
    long = {
        f"{name_of(path)}:{function.name}": body_lines(function)
        for path in sources("services", "spark", "tools", "bench")
        for function in functions(path)
        if body_lines(function) > FUNCTION_LINES_MAX
    }
    unexcused = {name: lines for name, lines in long.items() if name not in LONG_FUNCTIONS}
    assert not unexcused
    assert not LONG_FUNCTIONS.keys() - long.keys(), "exceptions that are no longer needed"


def test_names_of_classes_are_unique() -> None:
    """Who searches for a name finds one class. Private classes, known in one file, may be called as they like."""
    places: dict[str, list[str]] = {}
    for path in sources("services", "spark", "tools", "bench"):
        for node in nodes_of(path):
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                places.setdefault(node.name, []).append(name_of(path))
    twice = {name: found for name, found in places.items() if len(found) > 1}
    assert not {name: found for name, found in twice.items() if name not in SHARED_NAMES}
    assert twice.keys() >= SHARED_NAMES, "exceptions that are no longer needed"


def test_everything_public_says_what_it_means() -> None:
    silent = []
    for path in sources("services", "spark"):
        tree = tree_of(path)
        if ast.get_docstring(tree) is None:
            silent.append(name_of(path))
        silent += [
            f"{name_of(path)}:{node.lineno} {node.name}" for node in public_definitions(tree) if says_nothing(node)
        ]
    assert not silent


Definition = ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef


def public_definitions(tree: ast.Module | ast.ClassDef) -> Iterator[Definition]:
    """Public classes and functions of a module, and the public methods of public classes."""
    for node in tree.body:
        if isinstance(node, Definition) and not node.name.startswith("_"):
            yield node
            if isinstance(node, ast.ClassDef):
                yield from public_definitions(node)


def says_nothing(node: Definition) -> bool:
    decorators = {ast.unparse(decorator) for decorator in node.decorator_list}
    return ast.get_docstring(node) is None and not decorators & {"overload", "override", "typing.override"}


def test_every_test_file_says_what_it_is_about() -> None:
    silent = [name_of(path) for path in sources("tests") if path.read_text() and not has_docstring(path)]
    assert not silent


def has_docstring(path: Path) -> bool:
    return path.read_text().startswith('"""')


def test_every_test_asserts_something() -> None:
    assert Assertions(REPOSITORY / "tests").silent() == []


def test_a_test_that_asserts_nothing_is_found(tmp_path: Path) -> None:
    package = tmp_path / "tests"
    package.mkdir()
    (package / "kit.py").write_text(
        "def check(x):\n    assert x\n\ndef goes_on(x):\n    check(x)\n\ndef idle(x):\n    return x\n\n"
        "class Trial:\n    def call(self):\n        self._judge()\n\n"
        "    def _judge(self):\n        raise AssertionError\n\n    def rest(self):\n        pass\n"
    )
    (package / "test_some.py").write_text(
        "from tests.kit import Trial, check as see, goes_on, idle\n\n"
        "def test_a():\n    assert True\n\ndef test_b():\n    see(1)\n\nasync def test_c():\n    goes_on(1)\n\n"
        "def test_d():\n    Trial().call()\n\ndef test_e():\n    with pytest.raises(ValueError):\n        idle(1)\n\n"
        "def test_silent():\n    idle(1)\n\ndef test_at_rest():\n    Trial().rest()\n\n"
        "def test_given(trial):\n    trial.call()\n"
    )
    found = [line.rpartition(" ")[2] for line in Assertions(package).silent()]
    assert found == ["test_silent", "test_at_rest", "test_given"]


OTHER_LAYOUTS = {
    "services/common/access/keeper.py": "a digest becomes a number",
    "services/common/grpc_transport/": "HTTP/2 and gRPC",
    "services/common/health_probe.py": "HTTP/2, for one question",
    "services/common/files/record_lock.py": "the kernel's struct flock",
    "services/common/wire/": "RocketMQ's remoting protocol",
    "services/replicator/frames.py": "RocketMQ's HA protocol",
    "services/store/delivery/delays/timer_check.py": "RocketMQ's `timercheck`",
    "services/store/delivery/delays/timer_entry.py": "the index of timers, which is our own",
}
"""Homes of layouts that are no record's, and not of the files of RocketMQ's store: path or folder -> what it is."""

HOME_OF_RECORDS = "services/store/format/"


def home_of(path: str) -> str | None:
    return next((home for home in OTHER_LAYOUTS if path.startswith(home)), None)


def test_only_format_knows_where_fields_are() -> None:
    """Else a change of the layout, or a fault in reading it, has as many places as there are readers.

    The compiled core is translated to C and has offsets in its code; its records are compared with those of Python.
    """
    lines = {name_of(path): field_offsets(nodes_of(path)) for path in sources("services", "spark")}
    knowing = {path: found for path, found in lines.items() if found}
    elsewhere = {
        path: found for path, found in knowing.items() if not path.startswith(HOME_OF_RECORDS) and home_of(path) is None
    }
    assert not elsewhere
    assert sum(path.startswith(HOME_OF_RECORDS) for path in knowing) > 5, "what knows them is not found"
    assert not OTHER_LAYOUTS.keys() - {home_of(path) for path in knowing}, "exceptions that are no longer needed"


@pytest.mark.parametrize(
    "line",
    [
        "import struct",
        "from struct import Struct, unpack_from",
        "size = int.from_bytes(file.map[at : at + 4], 'big')",
        "offset = int.from_bytes(pulled.records[_PHYSICAL_OFFSET], 'big')",
        "_PHYSICAL_OFFSET = slice(28, 36)",
        "is_blank = file.map[at + 4 : at + 8] == MAGIC_BLANK.to_bytes(4, 'big')",
        "is_record = mapped.map[4:8] in MAGICS",
        "same = record[at + 20 : at + 28] == number",
        "UNIT = np.dtype([('physical', '>i8'), ('size', '>i4')])",
        "before = int_at(at + 16)",
    ],
)
def test_code_that_knows_a_field_is_found(line: str) -> None:
    assert field_offsets(ast.walk(ast.parse(line))) == [1]


def test_code_that_names_what_it_reads_is_no_finding() -> None:
    lines = ["size_at(file.map, at)", "units[at * UNIT_SIZE : stop * UNIT_SIZE]", "file.map[begin:end]", "row[:2]"]
    assert field_offsets(ast.walk(ast.parse("\n".join(lines)))) == []


FORBIDDEN_TEXT = {
    "a package registry's host": re.compile(
        r"\b(pypi\.org|pythonhosted\.org|repo\d?\.maven|registry-\d|goproxy)", re.I
    ),
    "a path of somebody's machine": re.compile(r"(?<![\w.])/(work|home/\w+|Users/\w+|tmp/(venv|plan))/", re.I),
    "an unfinished thought": re.compile(r"\b(XX" + r"X|FIX" + r"ME)\b"),
}


@pytest.mark.parametrize("what", FORBIDDEN_TEXT)
def test_no_tracked_file_contains(what: str) -> None:
    found = []
    for path in tracked_files():
        try:
            lines = path.read_text(encoding="utf-8").splitlines()
        except UnicodeDecodeError:
            continue
        if path == Path(__file__).resolve():
            continue
        found += [f"{name_of(path)}:{at}" for at, line in enumerate(lines, 1) if FORBIDDEN_TEXT[what].search(line)]
    assert not found


def test_processes_are_started_without_code_between_fork_and_exec() -> None:
    """What libraries have for forks would run there: grpcio's part aborts now and then (processes/child_process.py)."""
    found = [
        f"{name_of(path)}:{node.value.lineno}"
        for path in [*sources("services"), *sources("spark")]
        for node in nodes_of(path)
        if isinstance(node, ast.keyword) and node.arg == "preexec_fn"
    ]
    assert not found


def test_every_package_is_a_package() -> None:
    directories = {path.parent for path in SERVICES.rglob("*.py")}
    missing = [name_of(directory) for directory in sorted(directories) if not (directory / "__init__.py").is_file()]
    assert not missing, "directories with modules and no __init__.py"


def test_what_packages_export_exists_and_is_sorted() -> None:
    for path in sources("services"):
        if path.with_suffix(".pxd").exists():  # of the compiled core: not to be imported where that is not built
            continue
        module = importlib.import_module("tandemmq" + ".".join(["", *path.relative_to(SERVICES).with_suffix("").parts]))
        exported = getattr(module, "__all__", None)
        if exported is not None:
            assert [name for name in exported if not hasattr(module, name)] == [], name_of(path)
            assert len(set(exported)) == len(exported), name_of(path)


def test_constraints_pin_with_hashes_and_name_no_address() -> None:
    text = (REPOSITORY / "constraints.txt").read_text()
    assert "://" not in text
    entries = re.split(r"\n(?=[a-z])", text.split("\n", 2)[2])
    pinned = {re.split(r"==", entry, maxsplit=1)[0].strip() for entry in entries if "--hash=sha256:" in entry}
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())
    asked = project["project"]["dependencies"] + project["dependency-groups"]["build"]
    asked += project["project"]["optional-dependencies"]["server"]
    asked += [entry for entry in project["dependency-groups"]["dev"] if isinstance(entry, str)]
    names = {re.split(r"[<>=\[ ]", requirement, maxsplit=1)[0] for requirement in asked}
    assert names <= pinned


STARTED = (
    *("store.__main__", "replicator.__main__", "metasync.__main__"),
    *("naming.__main__", "gateway.__main__", "node.supervisor"),
)


@pytest.mark.parametrize("module", STARTED)
def test_services_start_without_heavy_imports(module: str) -> None:
    program = f"import json, sys, tandemmq.{module}; print(json.dumps(sorted(sys.modules)))"
    outcome = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    loaded = {module.partition(".")[0] for module in json.loads(outcome.stdout)}
    assert not loaded & HEAVY_MODULES


UNMAPPED = {"static", "v1", "v2"}
"""Folders without code of ours: pages, and what is generated."""


def mapped() -> list[str]:
    """Packages whose docstrings say what each module is: all."""
    roots = (SERVICES, REPOSITORY / "spark")
    found = {path.parent for root in roots for path in root.rglob("__init__.py") if UNMAPPED.isdisjoint(path.parts)}
    return sorted(name_of(folder) for folder in found if len(list(folder.glob("*.py"))) > 1)


def is_told(module: str, told: str) -> bool:
    """Whether a map names a module, as `name.py` or as `name` alone."""
    return re.search(rf"(?<![/\w.]){module}(\.py\b|(?![\w.]))", told) is not None


@pytest.mark.parametrize("package", mapped())
def test_a_map_of_a_package_names_all_of_its_modules(package: str) -> None:
    folder = REPOSITORY / package
    told = ast.get_docstring(tree_of(folder / "__init__.py")) or ""
    modules = {path.name for path in folder.glob("*.py")} - {"__init__.py"}
    assert {name for name in modules if not is_told(name.removesuffix(".py"), told)} == set()
    named = set(re.findall(r"(?<![/\w])[a-z_]+\.py\b", told))
    assert named - modules == set(), "nothing that is not there"
    rooms = {path.parent.name for path in folder.glob("*/__init__.py")} - UNMAPPED
    assert {name for name in rooms if f"{name}/" not in told and f"`{name}`" not in told} == set()


PUBLIC_ALL_THE_SAME = {"_asdict", "_exit", "_fields", "_make", "_replace"}
"""Of named tuples, and of os: their names begin with an underscore for other reasons."""

PRIVATE_TABLE = "### What libraries do not promise"


def is_private(name: str) -> bool:
    return name.startswith("_") and not name.endswith("__") and name not in PUBLIC_ALL_THE_SAME


BY_NAME = {"getattr", "hasattr", "setattr", "delattr"}


def is_slots(target: ast.expr) -> bool:
    return isinstance(target, ast.Name) and target.id == "__slots__"


def names_of_ours(path: Path) -> Iterator[str]:
    """What a module defines itself: functions, classes, variables, attributes, slots."""
    for node in nodes_of(path):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.name
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "self":
            yield node.attr
        elif isinstance(node, ast.Assign) and is_slots(node.targets[0]):
            yield from ast.literal_eval(node.value)


def names_of_others(path: Path) -> Iterator[str]:
    """Private names that a module takes from an object or a module outside."""
    for node in nodes_of(path):
        if isinstance(node, ast.Attribute):
            yield node.attr
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in BY_NAME:
            yield from (str(one.value) for one in node.args[1:2] if isinstance(one, ast.Constant))
        elif isinstance(node, ast.ImportFrom):
            yield from (*(node.module or "").split("."), *(alias.name for alias in node.names))
        elif isinstance(node, ast.Import):
            yield from (part for alias in node.names for part in alias.name.split("."))


def test_private_names_of_libraries_are_in_their_table() -> None:
    """It says what happens when they are gone. Found by name: what our own code defines anywhere is taken for ours."""
    text = (REPOSITORY / "docs" / "CONTRIBUTING.md").read_text().partition(PRIVATE_TABLE)[2].partition("\n## ")[0]
    rows = [line.split("|")[1:-1] for line in text.splitlines() if line.startswith("| `")]
    listed = {part for row in rows for name in re.findall("`(.*?)`", row[0]) for part in name.split(".")}
    paths = sources("services", "spark", "tools", "bench")
    ours = {name for path in paths for name in names_of_ours(path)}
    used = {(name_of(path), name) for path in paths for name in names_of_others(path) if is_private(name)}
    assert len(rows) > 5, "the table is not found"
    assert not {(path, name) for path, name in used if name not in ours | listed}
    for row in rows:
        source = (REPOSITORY / row[2].strip().strip("`")).read_text()
        lacks = [name for name in re.findall("`(.*?)`", row[0]) if name.split(".")[-1] not in source]
        assert not lacks, "no longer used"
