"""The oldest versions that pyproject.toml allows: generated code refuses older ones when it is imported."""

import re
import subprocess
import sys
import tomllib
from pathlib import Path
from types import SimpleNamespace

from tandemmq.cli.nouns.calls import _is_repeated
from tandemmq.store.v1.store_pb2 import SendBatchRequest

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


def test_what_grpcio_made_generic_later_is_not_subscripted_when_imported() -> None:
    program = """
import grpc.aio
for name in ("StreamUnaryMultiCallable", "StreamStreamMultiCallable"):
    setattr(grpc.aio, name, type(name, (), {}))  # as grpcio 1.71 has them
import tandemmq.common.grpc_transport
print("imported")
"""
    told = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True).stdout
    assert told == "imported\n"


def test_a_field_of_protobuf_5_says_by_its_label_whether_it_is_repeated() -> None:
    assert _is_repeated(SimpleNamespace(label=3, LABEL_REPEATED=3))
    assert not _is_repeated(SimpleNamespace(label=1, LABEL_REPEATED=3))
    fields = SendBatchRequest.DESCRIPTOR.fields_by_name
    assert _is_repeated(fields["messages"]), "of the protobuf that is installed"
    assert not _is_repeated(fields["no_wait"])
