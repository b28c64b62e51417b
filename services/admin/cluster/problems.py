"""What is wrong with a cluster, in words for people."""

from collections.abc import Iterable, Iterator, Sequence

from tandemmq.admin.v1 import admin_pb2
from tandemmq.common.calling.addresses import host_port, is_loopback, parse_host_port
from tandemmq.common.counted import counted
from tandemmq.common.settings import default_ports
from tandemmq.replication.v1 import replication_pb2
from tandemmq.store.v1 import replica_log_pb2

DISK_FULL_FROM = 0.95
LAG_BYTES = 256 << 20
STALE_SECONDS = 60.0
"""A slave's tables are copied every 10 s by default."""

_TABLES = {1: "topics", 2: "groups", 3: "consumer offsets", 4: "delay offsets"}

_STATES = {
    replication_pb2.CONNECTING: "does not reach its master",
    replication_pb2.COMPARING: "still compares its log with its master's",
    replication_pb2.REFUSED: "refuses to follow its master, somebody must act",
}


def add_problems(nodes: Sequence[admin_pb2.Node]) -> None:
    """Fills `problems` of every node."""
    for node in nodes:
        node.problems.extend(_of_services(node))
        node.problems.extend(_of_store(node))
        node.problems.extend(_of_replaced(node, nodes))
        node.problems.extend(_of_replicas(node))
        node.problems.extend(_of_slave(node))
        node.problems.extend(_of_metadata(node))
        node.problems.extend(_of_version(node, nodes))
        node.problems.extend(_of_broker(node, [one for one in nodes if one.broker_name == node.broker_name]))


def _of_services(node: admin_pb2.Node) -> Iterator[str]:
    for service in node.services:
        if not service.answers:
            yield f"the {service.service} at {service.address} does not answer: {service.reason}"
        elif not service.serving:
            yield f"the {service.service} does not serve: {service.reason}"
        elif service.reason:
            yield f"the {service.service} answers only in part: {service.reason}"
        yield from service.description.problems


def _of_store(node: admin_pb2.Node) -> Iterator[str]:
    if node.HasField("log"):
        if not node.log.writable and node.role == admin_pb2.MASTER:
            yield f"the store takes no messages: {node.log.not_writable_reason or 'it does not say why'}"
        if node.log.damaged:
            size = sum(one.end_offset - one.begin_offset for one in node.log.damaged)
            first = node.log.damaged[0]
            yield (
                f"the log has {counted(len(node.log.damaged), 'damaged range')}, {_bytes(size)}, which are skipped; "
                f"the first begins at {first.begin_offset}: {first.reason}"
            )
    if node.disk.total_bytes:
        used = 1 - node.disk.free_bytes / node.disk.total_bytes
        if used >= DISK_FULL_FROM:
            yield f"the disk of {node.disk.directory} is {used:.0%} full: {_bytes(node.disk.free_bytes)} are left"


def _of_replaced(node: admin_pb2.Node, nodes: Iterable[admin_pb2.Node]) -> Iterator[str]:
    """A master that was replaced, and how it becomes a slave."""
    if node.role == admin_pb2.FENCED:
        masters = [one for one in nodes if one.broker_name == node.broker_name and one.role == admin_pb2.MASTER]
        newest = max(masters, key=lambda one: one.epoch, default=None)
        known = newest is not None and newest.epoch >= node.replication.identity.fenced_by_epoch
        advice = _follow(node, newest if known else None)
        yield f"a newer master has replaced this one: it takes no messages; {advice}"


def _follow(node: admin_pb2.Node, master: admin_pb2.Node | None) -> str:
    """What to do. Addresses are those by which admin reaches the nodes."""
    port = 0 if master is None else master.replication.ha_port
    if master is None or not port:
        return "its new master does not answer admin now: when it does, the command to follow it stands here"
    ours = _replicator_of(node)
    theirs = _replicator_of(master)
    host, replicator_port = parse_host_port(theirs)
    if is_loopback(host) and not is_loopback(parse_host_port(ours)[0]):
        return f"let it follow {master.name}, which accepts slaves on port {port} of admin's machine"
    where = "" if replicator_port == default_ports.REPLICATOR else f" --replicator {theirs}"
    return f"let it follow {master.name}: `tandem replica follow {host_port(host, port)}{where} --address {ours}`"


def _replicator_of(node: admin_pb2.Node) -> str:
    return next(one.address for one in node.services if one.service == "replicator")


def _of_replicas(node: admin_pb2.Node) -> Iterator[str]:
    for one in node.replication.replicas:
        if one.silent_seconds:
            silence = f"{one.silent_seconds:.0f} s, and the connection is open"
            yield f"slave {one.identity} at {one.address} has not reported for {silence}: does it hang?"


def _of_slave(node: admin_pb2.Node) -> Iterator[str]:
    if node.role != admin_pb2.SLAVE or not node.replication.HasField("follower"):
        return
    follower = node.replication.follower
    state = _STATES.get(follower.state)
    if state is not None:
        why = f": {follower.problem}" if follower.problem else ""
        yield f"the slave {state} at {follower.master_address or 'an unknown address'}{why}"
    lag = follower.master_max_offset - follower.received_offset
    if follower.master_max_offset and lag > LAG_BYTES:
        yield f"the slave has a lag of {_bytes(lag)}"


def _of_metadata(node: admin_pb2.Node) -> Iterator[str]:
    for table in node.metadata.tables:
        name = _TABLES.get(table.table, f"table {table.table}")
        if table.problem:
            yield f"metadata, {name}: {table.problem}"
        elif table.sync_age_seconds > STALE_SECONDS and node.role == admin_pb2.SLAVE:
            yield f"metadata, {name}: not compared with the master's for {table.sync_age_seconds:.0f} s"


def _of_version(node: admin_pb2.Node, nodes: Iterable[admin_pb2.Node]) -> Iterator[str]:
    """Told at the nodes that do not run the newest."""
    newest = max((one for other in nodes for one in _versions(other)), key=_order, default="")
    older = sorted(version for version in _versions(node) if _order(version) < _order(newest))
    if older:
        yield f"version {', '.join(older)} runs here, and {newest} elsewhere"


def _of_broker(node: admin_pb2.Node, nodes: Sequence[admin_pb2.Node]) -> Iterator[str]:
    """`nodes`: those of the same broker, this one among them."""
    if not node.broker_name or node.role != admin_pb2.MASTER:
        return
    masters = [one for one in nodes if one.role == admin_pb2.MASTER]
    if len(masters) > 1:
        others = ", ".join(f"{one.name} (epoch {one.epoch})" for one in masters if one.name != node.name)
        newest = max(masters, key=lambda one: one.epoch)
        advice = f"this one is the older: {_follow(node, newest)}" if newest.epoch > node.epoch else ""
        only = "only the one with the greater epoch may go on"
        yield f"broker {node.broker_name} has another master: {others}; {advice or only}"
    replication = node.replication
    if replication.identity.role == replica_log_pb2.SYNC_MASTER and not replication.in_sync:
        yield "no slave is in sync, though this master waits for one (SYNC_MASTER): sends end as SLAVE_NOT_AVAILABLE"


def _versions(node: admin_pb2.Node) -> set[str]:
    return {one.description.version for one in node.services if one.HasField("description")}


def _order(version: str) -> tuple[tuple[int, int, str], ...]:
    """Versions in this order are older and newer: numbers as numbers, and 1.0.dev1 comes before 1.0."""
    parts = ((2, int(part), "") if part.isdigit() else (0, 0, part) for part in version.split("."))
    return *parts, (1, 0, "")


def _bytes(size: float) -> str:
    """Powers of 1,000, as the command line and the console have them."""
    if size < 1000:
        return f"{size:,.0f} bytes"
    units = ["bytes", "kB", "MB", "GB", "TB"]
    while size >= 999.95 and len(units) > 1:
        size /= 1000
        units.pop(0)
    return f"{size:,.1f} {units[0]}"
