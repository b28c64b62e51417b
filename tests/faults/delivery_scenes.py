"""What the delivery campaigns break: a store alone, a store whose power is cut, a pair that changes its master."""

import json
import os
import random
import signal
import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from pathlib import Path

import grpc

from tandemmq.store.delivery.members.groups import GROUPS as GROUP_TABLE
from tandemmq.store.delivery.members.groups import GroupConfig
from tests.faults.delivery_consumer import now
from tests.faults.delivery_history import Fault, Group
from tests.faults.pair import Node, Pair
from tests.faults.pair_process import ServiceProcess, until
from tests.faults.powercuts import LOGFLUSH, NOLOGFLUSH, LoopDisk
from tests.faults.test_pair_promotion import back_as_slave, exchanged, promote

HEAL_SECONDS = 120.0
QUICK_DELIVERY: dict[str, object] = {"slaveTimeout": 3_000, "transactionTimeOut": 60_000}


def write_groups(root: Path, groups: list[Group]) -> None:
    """The table of groups of a store that was never started."""
    entries = {
        group.name: GroupConfig(
            group.name, retry_max_times=group.deliveries - 1, consume_message_orderly=group.ordered
        ).to_json()
        for group in groups
    }
    (root / "config").mkdir(parents=True)
    version = {"stateVersion": 0, "counter": 1, "timestamp": 1}
    (root / "config" / GROUP_TABLE.file).write_text(json.dumps({GROUP_TABLE.key: entries, "dataVersion": version}))
    os.sync()  # the power may go at once


class Scene(ABC):
    """Something that delivers, and what may be done to it."""

    nodes: list[Node]
    kind: str
    """In a word, for the report."""

    def __init__(self, chance: random.Random) -> None:
        self.chance = chance
        self.faults: list[Fault] = []

    @property
    def addresses(self) -> list[str]:
        """Of the stores, whichever is the master."""
        return [node.address("store") for node in self.nodes]

    @property
    @abstractmethod
    def master(self) -> Node:
        """The node that delivers."""

    @abstractmethod
    def start(self) -> None:
        """Start all of it."""

    @abstractmethod
    def ways(self) -> list[tuple[int, Callable[[], None]]]:
        """What may be done to it, with weights."""

    @abstractmethod
    def heal(self) -> None:
        """Wait until all of it works."""

    def close(self) -> None:
        """Kill all of it."""
        for node in self.nodes:
            node.close()

    def happened(self, what: str, begun: float, *, lossy: bool = False) -> None:
        """Remember a fault that is over."""
        self.faults.append(Fault(what, begun, now(), lossy))

    def kill(self, process: ServiceProcess, name: str) -> None:
        """kill -9, now and then after a time in which it stood still; and start it again, a little later."""
        begun = now()
        if process.running and self.chance.random() < 0.2:
            os.kill(process.pid, signal.SIGSTOP)
            time.sleep(self.chance.choice([0.1, 1.0]))
        process.kill()
        time.sleep(self.chance.choice([0, 0, 0.3]))
        process.launch()
        if self.chance.random() < 0.7:
            process.wait_answering()
        self.happened(f"kill {name}", begun)

    def restart(self, process: ServiceProcess) -> None:
        """A clean stop, and a start; no fault. What is just starting is left alone."""
        if not process.running:
            return
        process.wait_answering()
        code = process.stop()
        assert code == 0, f"{process.service} ended with {code}: {process.log.read_text()[-3000:]}"
        process.start()


class LoneStore(Scene):
    """One store, with metasync or without."""

    def __init__(self, directory: Path, chance: random.Random, groups: list[Group]) -> None:
        super().__init__(chance)
        self.with_metasync = chance.random() < 0.5
        flush = chance.choice(["ASYNC_FLUSH", "SYNC_FLUSH"])
        self.nodes = [Node(directory, 0, "ASYNC_MASTER", store={**QUICK_DELIVERY, "flushDiskType": flush})]
        self.kind = f"{flush}{', metasync' if self.with_metasync else ''}"
        if not self.with_metasync:
            self.master.store.settings["metasyncAddress"] = ""
        write_groups(self.master.root, groups)

    @property
    def master(self) -> Node:
        return self.nodes[0]

    @property
    def processes(self) -> list[ServiceProcess]:
        """Those of the node that are needed."""
        return [self.master.metasync, self.master.store] if self.with_metasync else [self.master.store]

    def start(self) -> None:
        for process in self.processes:
            process.launch()
        for process in self.processes:
            process.wait_answering()

    def ways(self) -> list[tuple[int, Callable[[], None]]]:
        store = self.master.store
        ways: list[tuple[int, Callable[[], None]]] = [
            (3, lambda: self.kill(store, "store")),
            (2, lambda: self.restart(store)),
        ]
        if self.with_metasync:
            ways.append((1, lambda: self.kill(self.master.metasync, "metasync")))
        return ways

    def heal(self) -> None:
        for process in self.processes:
            if not process.running:
                process.launch()
            process.wait_answering()


class CutStore(LoneStore):
    """One store on a disk of its own whose power is cut."""

    def __init__(self, directory: Path, chance: random.Random, groups: list[Group]) -> None:
        self._disk = LoopDisk(directory)
        super().__init__(self._disk.mount_point / "node", chance, groups)
        self.master.store.settings["flushDiskType"] = "SYNC_FLUSH"
        self.kind = f"power cuts{', metasync' if self.with_metasync else ''}"

    def ways(self) -> list[tuple[int, Callable[[], None]]]:
        return [*super().ways(), (4, self.cut)]

    def cut(self) -> None:
        """Whatever was not synced is gone."""
        begun = now()
        self._disk.cut(self.chance.choice([NOLOGFLUSH, NOLOGFLUSH, LOGFLUSH]))
        for process in self.processes:
            process.kill()
        self._disk.restore()
        self.start()
        self.happened("power cut", begun, lossy=True)

    def close(self) -> None:
        super().close()
        self._disk.remove()


class ChangingPair(Scene):
    """A pair, whose slave is promoted now and then."""

    def __init__(self, directory: Path, chance: random.Random, groups: list[Group]) -> None:
        super().__init__(chance)
        flush = chance.choice(["ASYNC_FLUSH", "SYNC_FLUSH"])
        self.pair = Pair(directory, store={**QUICK_DELIVERY, "flushDiskType": flush})
        self.nodes = list(self.pair.nodes)
        self.kind = f"pair, {flush}"
        write_groups(self.master.root, groups)

    @property
    def master(self) -> Node:
        return self.pair.master

    def start(self) -> None:
        for node in self.nodes:
            for process in node.processes.values():
                process.launch()
        self.pair.heal()

    def ways(self) -> list[tuple[int, Callable[[], None]]]:
        processes = dict(self.pair.processes())
        kills: list[tuple[int, Callable[[], None]]] = [
            (3 if name == "master store" else 1, lambda one=process, name=name: self.kill(one, name))  # type: ignore[misc]
            for name, process in processes.items()
        ]
        return [*kills, (2, lambda: self.restart(self.master.store)), (2, self.take_over), (2, self.hand_over)]

    def take_over(self) -> None:
        """The master dies; its slave, which has all that was acknowledged, takes its place."""
        self.heal()
        begun = now()
        old, new = self.pair.nodes
        old.kill()
        time.sleep(self.chance.choice([0, 0.5]))
        try:
            promote(new, old_master_is_gone=True)
        except grpc.RpcError:  # it may not have heard yet who else follows
            self.heal()
            self.happened("kill master", begun)
            return
        self._changed(begun, old, new)

    def hand_over(self) -> None:
        """The slave is promoted while its master lives and is under load: it may say that it has not everything."""
        self.heal()
        begun = now()
        old, new = self.pair.nodes
        try:
            promote(new)
        except grpc.RpcError:
            return
        self._changed(begun, old, new)

    def _changed(self, begun: float, old: Node, new: Node) -> None:
        try:
            old.start()  # until it is fenced it gives out messages, as far as it knows
            until(lambda: old.role().identity.fenced_by_epoch, HEAL_SECONDS, "the new master fences the old one")
        finally:
            self.happened("promotion", begun, lossy=True)
        back_as_slave(old, new)
        exchanged(self.pair)
        self.heal()

    def heal(self) -> None:
        for node in self.nodes:
            node.start()
        self.pair.wait_following(HEAL_SECONDS)


SCENES: dict[str, Callable[[Path, random.Random, list[Group]], Scene]] = {
    "store": LoneStore,
    "power": CutStore,
    "pair": ChangingPair,
}
