"""Network namespaces and a bridge: hosts of a kind, between which the network can be cut for real. Needs root.

::

    test (10.77.x.1) ─── bridge ─┬─ 10.77.x.2, namespace a
                                 ├─ 10.77.x.3, namespace b
                                 └─ 10.77.x.4, namespace c, if three are asked for

The bridge has a namespace of its own: what Docker, or a firewall, wants of the machine's bridges is not wanted of it.
"""

import os
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Literal

import pytest

Side = Literal["a", "b", "c"]
PAIR: tuple[Side, ...] = ("a", "b")
_NOBODY = "02:00:00:00:00:01"
"""A MAC address that none of them has: what is sent there, arrives nowhere."""


def need_namespaces() -> None:
    """Skips the test where there are none, with the reason."""
    if os.geteuid() != 0 or shutil.which("ip") is None:
        pytest.skip("network namespaces need root and the ip command")
    probe = f"tmq-probe-{os.getpid()}"
    if subprocess.run(["ip", "netns", "add", probe], capture_output=True, check=False).returncode:
        pytest.skip("network namespaces are not allowed here")
    subprocess.run(["ip", "netns", "del", probe], check=True)


def _ip(*words: str) -> None:
    done = subprocess.run(["ip", *words], capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"ip {' '.join(words)}: {done.stderr}"


class Network:
    """What `network` gives."""

    def __init__(self, tag: str, net: str, sides: Sequence[Side]) -> None:
        self._tag = tag
        self.addresses: dict[Side, str] = {side: f"{net}.{2 + at}" for at, side in enumerate(sides)}

    def prefix(self, side: Side) -> tuple[str, ...]:
        """What starts a process there."""
        return "ip", "netns", "exec", f"{self._tag}{side}"

    def cut(self, sender: Side, *receivers: Side) -> None:
        """Nothing that `sender` sends reaches these any more, or nobody. All can still be reached from the test."""
        for receiver in receivers or self._others(sender):
            self._neighbour("replace", sender, receiver, "lladdr", _NOBODY, "nud", "permanent")

    def mend(self) -> None:
        """All is well again."""
        for side in self.addresses:
            for other in self._others(side):
                self._neighbour("del", side, other, check=False)

    def _others(self, side: Side) -> list[Side]:
        return [one for one in self.addresses if one != side]

    def _neighbour(self, verb: str, side: Side, other: Side, *words: str, check: bool = True) -> None:
        command = ["ip", "-n", f"{self._tag}{side}", "neigh", verb, self.addresses[other], *words, "dev", "eth0"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert not check or done.returncode == 0, done.stderr


@contextmanager
def network(sides: Sequence[Side] = PAIR) -> Iterator[Network]:
    """A namespace for each, reachable from each other and from here."""
    need_namespaces()
    # By process, so that two workers of one test run never take the same.
    tag, net = f"tmq{os.getpid() % 10_000}", f"10.77.{os.getpid() % 256}"
    with ExitStack() as undo:
        hub = f"{tag}h"
        _ip("netns", "add", hub)
        undo.callback(_ip, "netns", "del", hub)
        _ip("-n", hub, "link", "add", "bridge", "type", "bridge")
        _ip("-n", hub, "link", "set", "bridge", "up")
        _ip("link", "add", hub, "type", "veth", "peer", "name", "test", "netns", hub)
        _ip("-n", hub, "link", "set", "test", "master", "bridge", "up")
        _ip("addr", "add", f"{net}.1/24", "dev", hub)
        _ip("link", "set", hub, "up")
        result = Network(tag, net, sides)
        for side, address in result.addresses.items():
            name = f"{tag}{side}"
            _ip("netns", "add", name)
            undo.callback(_ip, "netns", "del", name)
            _ip("-n", hub, "link", "add", name, "type", "veth", "peer", "name", "eth0", "netns", name)
            _ip("-n", hub, "link", "set", name, "master", "bridge", "up")
            _ip("-n", name, "addr", "add", f"{address}/24", "dev", "eth0")
            _ip("-n", name, "link", "set", "eth0", "up")
            _ip("-n", name, "link", "set", "lo", "up")
        yield result
