"""All dashboards, in the order in which they are named."""

from boards.clients import CLIENTS
from boards.metasync import METASYNC
from boards.model import Dashboard
from boards.overview import OVERVIEW
from boards.replication import REPLICATION
from boards.store import STORE

DASHBOARDS: tuple[Dashboard, ...] = (OVERVIEW, STORE, REPLICATION, METASYNC, CLIENTS)
