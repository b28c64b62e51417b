"""Generates the Python code of every contract under protos/, or checks that what is there is fresh.

    python tools/generate_protos.py            writes services/**/v1/*_pb2*.py[i]
    python tools/generate_protos.py --check    writes nothing; says what is stale and exits with 1

protos/tandemmq/store/v1/store.proto becomes tandemmq.store.v1.store_pb2 (in services/store/v1), its gRPC stubs and
their types. Files without a contract that looks generated are stale, too.

The compiler is grpcio-tools, at a version that exists for Python 3.11 to 3.13. With a newer Python nothing is checked.
"""

import importlib.util
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[1]
PROTOS = REPOSITORY / "protos"
SOURCES = REPOSITORY / "src"
GENERATED = ("*_pb2.py", "*_pb2.pyi", "*_pb2_grpc.py", "*_pb2_grpc.pyi")


def main() -> int:
    """Generates or checks; returns the exit status."""
    if sys.argv[1:] not in ([], ["--check"]):
        print(__doc__, file=sys.stderr)
        return 2
    checks = sys.argv[1:] == ["--check"]
    if importlib.util.find_spec("grpc_tools") is None:
        print("protos: not checked" if checks else "protos: not generated", end=", ", file=sys.stderr)
        print("since grpcio-tools is not installed: Python 3.11 to 3.13 have it", file=sys.stderr)
        return 0 if checks else 1
    if checks:
        stale = stale_files()
        for line in stale:
            print(line, file=sys.stderr)
        if stale:
            print("run `make protos` and commit the outcome", file=sys.stderr)
        return 1 if stale else 0
    generate(SOURCES)
    return 0


def generate(target: Path) -> None:
    """Generates all code below `target`. Raises RuntimeError when a contract does not compile."""
    import grpc_tools
    from grpc_tools import protoc

    contracts = sorted(str(path.relative_to(PROTOS)) for path in PROTOS.rglob("*.proto"))
    bin_directory = Path(sys.executable).parent
    arguments = [
        "protoc",
        f"--proto_path={PROTOS}",
        f"--proto_path={Path(grpc_tools.__file__).parent / '_proto'}",
        f"--plugin=protoc-gen-mypy={bin_directory / 'protoc-gen-mypy'}",
        f"--plugin=protoc-gen-mypy_grpc={bin_directory / 'protoc-gen-mypy_grpc'}",
        f"--python_out={target}",
        f"--grpc_python_out={target}",
        f"--mypy_out=quiet:{target}",
        f"--mypy_grpc_out=quiet:{target}",
    ]
    if contracts and protoc.main(arguments + contracts) != 0:
        raise RuntimeError("a contract under protos/ does not compile")


def stale_files() -> list[str]:
    """What differs between the generated code in the tree and fresh code: one line a file."""
    with tempfile.TemporaryDirectory() as directory:
        fresh_root = Path(directory)
        generate(fresh_root)
        fresh = {path.relative_to(fresh_root): path.read_bytes() for path in _generated(fresh_root)}
    present = {path.relative_to(SOURCES): path.read_bytes() for path in _generated(SOURCES / "tandemmq")}
    lines = [f"stale: {path} has no contract" for path in sorted(present.keys() - fresh.keys())]
    lines += [f"missing: {path}" for path in sorted(fresh.keys() - present.keys())]
    lines += [f"stale: {path}" for path in sorted(fresh.keys() & present.keys()) if fresh[path] != present[path]]
    return lines


def _generated(root: Path) -> Iterator[Path]:
    for pattern in GENERATED:
        yield from root.rglob(pattern)


if __name__ == "__main__":
    sys.exit(main())
