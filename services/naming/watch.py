"""Watch: brokers of which nothing is heard, and those whose connections closed, are forgotten."""

from collections.abc import Callable

from tandemmq.common.log_output import get_log
from tandemmq.common.timers import Timers
from tandemmq.common.wire.remoting.registration import BrokerIdentity
from tandemmq.naming.routes import RouteTable

log = get_log(__name__)


class RouteWatch:
    """Keeps the table of routes true."""

    def __init__(
        self,
        routes: RouteTable,
        now: Callable[[], float],
        forgotten: Callable[[str, list[BrokerIdentity]], None],
        timers: Timers,
    ) -> None:
        """`forgotten` hears why, and who."""
        self._routes = routes
        self._now = now
        self._forgotten = forgotten
        self._timers = timers

    def closed(self, connection: object) -> None:
        """A connection has closed."""
        gone = self._routes.disconnected(connection)
        self._forgotten("closed", gone)
        for one in gone:
            log.warning("a broker is gone: its connection has closed", broker=one.name, address=one.address)

    def look(self) -> None:
        """Forget who has been silent for too long."""
        gone = self._routes.expire(self._now())
        self._forgotten("silent", gone)
        for one in gone:
            log.warning("a broker is gone: it has not been heard", broker=one.name, address=one.address)

    async def run(self, seconds: float) -> None:
        """Look so often, until cancelled."""
        while True:
            await self._timers.sleep(seconds)
            self.look()
