"""BrokerWatch: brokers of which nothing is heard, and those whose connections closed, are forgotten."""

import asyncio
from collections.abc import Callable

from tandemmq.common.log_output import get_log
from tandemmq.naming.routes import RouteTable

log = get_log(__name__)


class BrokerWatch:
    """Keeps the table of routes true."""

    def __init__(self, routes: RouteTable, now: Callable[[], float]) -> None:
        self._routes = routes
        self._now = now

    def closed(self, connection: object) -> None:
        """A connection has closed."""
        for address in self._routes.disconnected(connection):
            log.warning("a broker is gone: its connection has closed", broker=address)

    def look(self) -> None:
        """Forget who has been silent for too long."""
        for address in self._routes.expire(self._now()):
            log.warning("a broker is gone: it has not been heard", broker=address)

    async def run(self, seconds: float) -> None:
        """Look so often, until cancelled."""
        while True:
            await asyncio.sleep(seconds)
            self.look()
