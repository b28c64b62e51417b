"""What a job runs on a node's files: an audit, a rebuild; of a stopped slave a reseed."""

import os
import re
import shlex
import sys
from pathlib import Path
from typing import NamedTuple

from tandemmq.admin.cluster.nodes import KnownNode
from tandemmq.admin.errors import BadAdminRequest, NotPossible, ServiceAway
from tandemmq.admin.v1 import admin_pb2
from tandemmq.common.calling.addresses import is_loopback
from tandemmq.node.v1 import node_pb2
from tandemmq.store.v1 import store_pb2

_COMMANDS = {
    admin_pb2.AUDIT: ("data", "audit"),
    admin_pb2.REBUILD: ("data", "rebuild"),
    admin_pb2.RESEED: ("replica", "reseed"),
}

_MASTERS = re.compile(r"local(\[(\d+|\*)\])?|spark://\S+|sc://\S+|processes(\[([1-9]\d*|\*)\])?")

_PROCESSES = "processes"
"""`--master` for the cores of this machine, without Spark and its Java."""

_SPARK_MASTER = "TANDEM_SPARK_MASTER"
"""Where admin's environment has a Spark for jobs."""

_WORTH_PROCESSES = 1 << 30
"""An audit of a smaller log is done by one process: others would take as long to start."""

_EVERYWHERE = ("0.0.0.0", "::", "[::]")


class JobCommand(NamedTuple):
    """A command line."""

    arguments: list[str]
    """What follows `tandem`."""
    tells_progress: bool = True
    """It is long."""

    def line(self) -> list[str]:
        """What is run: the same Python, with what programs want to hear."""
        told = ["--json", "--progress"] if self.tells_progress else ["--json"]
        return [sys.executable, "-m", "tandemmq.cli.main", *self.arguments, *told]

    def shown(self) -> str:
        """What a person would type."""
        return shlex.join(["tandem", *self.arguments])


async def plan_job(node: KnownNode, request: admin_pb2.StartJobRequest) -> JobCommand:
    """The command of a job. Raises BadAdminRequest, NotPossible; CallRefused if the store does."""
    if request.kind not in _COMMANDS:
        raise BadAdminRequest("kind is missing: AUDIT, REBUILD or RESEED")
    if request.spark_master and not _MASTERS.fullmatch(request.spark_master):
        raise BadAdminRequest(
            f"spark_master {request.spark_master!r}: local[N], spark://HOST:PORT, sc://HOST:PORT or processes[N]"
        )
    store = await _running_store(node)
    if request.kind == admin_pb2.RESEED:
        return _reseed(node, request, store)
    root = _files(node, request, store)
    if store is None and request.kind == admin_pb2.REBUILD:
        raise NotPossible(
            f"the store of node {node.name} does not answer, and admin cannot know its settings",
            remedy=f"start it; or, while it is stopped, on its machine: tandem data rebuild {shlex.quote(str(root))}",
        )
    arguments = [*_COMMANDS[request.kind], str(root)]
    if store is not None:
        arguments += ["--running", node.addresses.store]
        if request.kind == admin_pb2.REBUILD:
            arguments += await _internal(node)
    arguments += [f"--topic={topic}" for topic in request.topics]
    return JobCommand(arguments + _master(request, root))


def _reseed(node: KnownNode, request: admin_pb2.StartJobRequest, store: store_pb2.GetLogResponse | None) -> JobCommand:
    """The command looks whether the directory is a slave's, and whether nobody uses it. Raises NotPossible."""
    root = node.addresses.files
    there = store.root if store is not None else "STORE" if root is None else str(root)
    by_hand = f"tandem replica reseed --data {shlex.quote(there)}"
    if store is not None:
        raise NotPossible(
            f"the store of node {node.name} runs: its log is moved aside only while it is stopped",
            remedy=f"stop it, then ask again; or, on its machine: {by_hand}",
        )
    if root is None or not os.access(root, os.R_OK | os.W_OK | os.X_OK):
        why = "adminNodes names no files=DIR for it" if root is None else f"{root} cannot be written"
        raise NotPossible(
            f"admin does not see the files of node {node.name}: {why}",
            remedy=f"run it on the node's machine: {by_hand}",
        )
    confirmed = ["--yes-it-was-a-master"] if request.was_a_master else []
    return JobCommand(["reseed", "--data", str(root), *confirmed], tells_progress=False)


async def _running_store(node: KnownNode) -> store_pb2.GetLogResponse | None:
    try:
        return await node.ask("store", node.store.GetLog(store_pb2.GetLogRequest()))
    except ServiceAway:
        return None


def _files(node: KnownNode, request: admin_pb2.StartJobRequest, store: store_pb2.GetLogResponse | None) -> Path:
    """The node's directory as admin sees it. Raises NotPossible, with the command to run by hand."""
    root = node.addresses.files
    if root is not None and (root / "commitlog").is_dir() and os.access(root / "commitlog", os.R_OK | os.X_OK):
        return root
    there = store.root if store is not None else "STORE"
    by_hand = f"tandem {' '.join(_COMMANDS[request.kind])} {shlex.quote(there)} --running {node.addresses.store}"
    why = "adminNodes names no files=DIR for it" if root is None else f"{root} has no readable commitlog/"
    raise NotPossible(
        f"admin does not see the files of node {node.name}: {why}", remedy=f"run it on the node's machine: {by_hand}"
    )


async def _internal(node: KnownNode) -> list[str]:
    """Where the store takes rebuilt files over, as its settings say. Raises NotPossible if admin cannot get there."""
    host = node.addresses.store.rpartition(":")[0]
    call = node.describe["store"].Describe(node_pb2.DescribeRequest(settings=True))
    said = {one.name: one.value for one in (await node.ask("store", call)).settings}
    internal, port = said.get("internalHost", ""), said.get("internalPort", "0")
    if not internal or port == "0":
        return []
    if is_loopback(internal) and not is_loopback(host):
        running = f"{internal}:{node.addresses.store.rpartition(':')[2]}"
        raise NotPossible(
            f"the store of node {node.name} takes rebuilt files over on its own machine only (internalHost={internal})",
            remedy=f"run it there: tandem data rebuild STORE --running {running}",
        )
    return ["--internal", f"{host if internal in _EVERYWHERE else internal}:{port}"]


def _master(request: admin_pb2.StartJobRequest, root: Path) -> list[str]:
    if request.spark_master:
        return [f"--master={request.spark_master}"]
    if os.environ.get(_SPARK_MASTER):
        return []
    if request.kind == admin_pb2.AUDIT and _size(root) < _WORTH_PROCESSES:
        return []
    return [f"--master={_PROCESSES}"]


def _size(root: Path) -> int:
    """Bytes of the log that are on the disk."""
    size = 0
    for path in (root / "commitlog").iterdir():
        try:
            size += path.stat().st_blocks * 512
        except FileNotFoundError:  # it expired
            continue
    return size
