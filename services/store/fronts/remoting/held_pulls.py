"""Pulls that are held, by group and topic: they end early when an operator sets the group's position."""

import asyncio
from collections.abc import Coroutine
from typing import Any

from tandemmq.common.net.remoting.connection import RemotingConnection
from tandemmq.store.broker.pulled import PullAnswer
from tandemmq.store.fronts.remoting.clients import RemotingClients


class HeldPulls:
    """Knows them."""

    def __init__(self, clients: RemotingClients) -> None:
        self._clients = clients
        self._tasks: dict[tuple[str, str], dict[asyncio.Task[PullAnswer], RemotingConnection]] = {}

    async def hold(
        self, group: str, topic: str, connection: RemotingConnection, looking: Coroutine[Any, Any, PullAnswer]
    ) -> PullAnswer | None:
        """What the look gives; None where it was ended early. Raises what it raises."""
        task = asyncio.get_running_loop().create_task(looking, name="a held pull")
        tasks = self._tasks.setdefault((group, topic), {})
        tasks[task] = connection
        try:
            await asyncio.wait((task,))
        except asyncio.CancelledError:
            task.cancel()
            raise
        finally:
            del tasks[task]
            if not tasks:
                self._tasks.pop((group, topic), None)
        return None if task.cancelled() else task.result()

    def end(self, group: str, topic: str) -> None:
        """End those of a group in a topic, but for those of clients that are told positions: these drop the answer."""
        for task, connection in list(self._tasks.get((group, topic), {}).items()):
            if not self._clients.takes_resets(connection, group):
                task.cancel()
