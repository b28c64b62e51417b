"""The oldest versions that pyproject.toml allows: generated code refuses older ones when it is imported."""

import re
import tomllib
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[3]


def floor(name: str) -> str:
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())
    (found,) = (one for one in project["project"]["dependencies"] if re.match(rf"{name}\b(?!-)", one))
    return str(found).removeprefix(f"{name}>=")


def said(pattern: str, files: str) -> set[str]:
    texts = [path.read_text() for path in (REPOSITORY / "services").rglob(files)]
    assert len(texts) > 10
    return {match[1] for text in texts if (match := re.search(pattern, text))}


def test_they_are_those_of_the_compiler_that_made_the_code() -> None:
    assert said(r"# Protobuf Python Version: (\S+)", "*_pb2.py") == {floor("protobuf")}
    assert said(r"GRPC_GENERATED_VERSION = '(\S+)'", "*_pb2_grpc.py") == {floor("grpcio")}
