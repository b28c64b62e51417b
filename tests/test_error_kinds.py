"""Errors and what clients are told of them: every kind in every table, and no protocol's words outside the tables."""

import importlib
import pkgutil
import re
from collections.abc import Iterator
from pathlib import Path

import grpc
import pytest

import tandemmq
from tandemmq.common.errors import Kind, TandemError
from tandemmq.common.serving import grpc_status
from tandemmq.common.serving.grpc_status import StatusTable
from tandemmq.common.wire.remoting.codes import ResponseCode
from tandemmq.rocketmq5.v2 import resources_pb2
from tandemmq.store.fronts.native import statuses
from tandemmq.store.fronts.remoting.statuses import CODES as CLASSIC_CODES
from tandemmq.store.fronts.rocketmq5.statuses import CODES
from tandemmq.store.v1 import store_pb2

SERVICES = Path(__file__).resolve().parents[1] / "src"
CONTRACT = Path(__file__).resolve().parents[1] / "protos/tandemmq/store/v1/store.proto"
TABLES = {"services": grpc_status.STATUSES, "store": statuses.STATUSES}
VERSION_5 = {
    "CONSUMER_GROUP_NOT_FOUND",
    "FORBIDDEN",
    "ILLEGAL_FILTER_EXPRESSION",
    "ILLEGAL_INVISIBLE_TIME",
    "INVALID_RECEIPT_HANDLE",
    "INVALID_TRANSACTION_ID",
}
"""Names of `apache.rocketmq.v2.Code`."""
ROCKETMQ = {*store_pb2.SendStatus.keys(), *store_pb2.PullStatus.keys(), "SYSTEM_BUSY", *VERSION_5}
CLIENTS_SEE = ("tandemmq.store.broker.", "tandemmq.store.fronts.native.", "tandemmq.common.access.errors.AccessRefused")
"""Where the errors are defined that only the store's clients see."""


def test_the_table_of_rocketmq_5_clients_has_every_kind() -> None:
    assert set(CODES) == set(Kind)
    assert not {resources_pb2.OK, resources_pb2.CODE_UNSPECIFIED} & set(CODES.values())


def test_the_table_of_classic_clients_has_every_kind() -> None:
    assert set(CLASSIC_CODES) == set(Kind)
    assert ResponseCode.SUCCESS not in CLASSIC_CODES.values()


@pytest.mark.parametrize("table", TABLES.values(), ids=TABLES)
def test_a_table_has_every_kind_and_names_statuses_that_exist(table: StatusTable) -> None:
    assert set(table) == set(Kind)
    assert {status.code for status in table.values()} <= set(grpc.StatusCode.__members__)
    assert {status.rocketmq for status in table.values()} <= ROCKETMQ


def test_every_kind_is_used_and_no_error_names_a_status() -> None:
    words = ROCKETMQ | set(grpc.StatusCode.__members__)
    errors = list(all_errors())
    assert {error.kind for error in errors} == set(Kind)
    named = [error for error in errors if words & {value for value in vars(error).values() if isinstance(value, str)}]
    assert named == []


def test_the_contract_promises_what_clients_get() -> None:
    """The table at the head of store.proto: nothing that cannot come, and all that the broker's own errors give."""
    rows = re.findall(r"^//   ([A-Z_]+) {2,}\S.*? {2,}([A-Z_]+(?:, [A-Z_]+)*)$", CONTRACT.read_text(), re.MULTILINE)
    promised = {(code, status) for code, names in rows for status in names.split(", ")}
    assert promised <= set(statuses.STATUSES.values())
    given = {
        statuses.STATUSES[error.kind]
        for error in all_errors()
        if f"{error.__module__}.{error.__qualname__}".startswith(CLIENTS_SEE) and error.__subclasses__() == []
    }
    assert given - promised == {("FAILED_PRECONDITION", "SERVICE_NOT_AVAILABLE")}, "UnreadableTable, at the start"


def all_errors(root: type[TandemError] = TandemError) -> Iterator[type[TandemError]]:
    if root is TandemError:
        for module in pkgutil.walk_packages(tandemmq.__path__, "tandemmq."):
            compiled = (SERVICES / module.name.replace(".", "/")).with_suffix(".pxd").exists()  # it may not be built
            if not module.name.endswith("__main__") and not compiled:
                importlib.import_module(module.name)
    yield root
    for error in root.__subclasses__():
        if error.__module__.startswith("tandemmq."):
            yield from all_errors(error)
