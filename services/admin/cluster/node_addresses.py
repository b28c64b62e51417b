"""Which nodes there are, and where their services answer: the text of `adminNodes`."""

from pathlib import Path
from typing import NamedTuple

from tandemmq.common.calling.addresses import parse_host_port
from tandemmq.common.errors import Kind, TandemError
from tandemmq.common.settings import default_ports

_FORM = "NAME=HOST or NAME=HOST:PORT, then ;metasync=HOST:PORT ;replicator=HOST:PORT ;files=DIR as needed"


class BadNodes(TandemError):
    """The text names no nodes."""

    kind = Kind.MISCONFIGURED
    remedy = f"write each as {_FORM}, separated by commas"


class NodeAddresses(NamedTuple):
    """One node: addresses as `host:port`."""

    name: str
    store: str
    metasync: str
    replicator: str
    files: Path | None = None
    """The node's directory as admin sees it; None if it does not."""


def parse_nodes(text: str) -> tuple[NodeAddresses, ...]:
    """The nodes of a setting, in their order. Raises BadNodes."""
    nodes = [_parse_node(entry.strip()) for entry in text.split(",") if entry.strip()]
    if not nodes:
        raise BadNodes("no node is named")
    names = [node.name for node in nodes]
    for name in names:
        if names.count(name) > 1:
            raise BadNodes(f"two nodes are called {name}")
    return tuple(nodes)


def check_nodes(text: str) -> str | None:
    """For `setting(check=…)`: what would be allowed, or None if the text is good."""
    try:
        parse_nodes(text)
    except BadNodes as error:
        return f"nodes as {_FORM} ({error.message})"
    return None


def _parse_node(entry: str) -> NodeAddresses:
    first, *options = (part.strip() for part in entry.split(";"))
    name, equals, store = (part.strip() for part in first.partition("="))
    if not equals or not name or not store:
        raise BadNodes(f"{first!r} is no node")
    host, store = _store_address(store)
    given = dict(_parse_option(name, option) for option in options)
    files = given.get("files")
    return NodeAddresses(
        name,
        store,
        given.get("metasync", f"{host}:{default_ports.METASYNC}"),
        given.get("replicator", f"{host}:{default_ports.REPLICATOR}"),
        None if files is None else Path(files),
    )


def _store_address(text: str) -> tuple[str, str]:
    """Host (as an address has it) and address; the port may be missing, and brackets of a bare IPv6 address."""
    if text.count(":") > 1 and not text.startswith("["):
        text = f"[{text}]"
    if text.endswith("]") or ":" not in text:
        return text, f"{text}:{default_ports.STORE}"
    _check(text)
    return text.rpartition(":")[0], text


def _parse_option(node: str, option: str) -> tuple[str, str]:
    key, equals, value = (part.strip() for part in option.partition("="))
    if key not in ("metasync", "replicator", "files") or not equals or not value:
        raise BadNodes(f"{option!r} of node {node} is not understood")
    if key != "files":
        _check(value)
    return key, value


def _check(address: str) -> None:
    try:
        parse_host_port(address)
    except ValueError as error:
        raise BadNodes(str(error)) from None
