"""Where the log of a RocketMQ master begins, found with nothing but the HA protocol.

Such a master serves any offset as asked. Below its first file it sends heartbeats and nothing else, for ever: an empty
slave that asks for the whole history would wait in vain once the oldest files have expired. So the slave asks for the
last file (0), which tells where that is, and then halves the files before it: data says that a file is there, a
heartbeat that it is not. A heartbeat takes five seconds; a thousand files take a minute, once in a slave's life.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import NamedTuple

from tandemmq.common.calling.addresses import parse_host_port
from tandemmq.common.log_output import get_log
from tandemmq.common.timers import Timers, time_limit
from tandemmq.replicator.frames import HEADER_SIZE, BadFrame, Body, TransferReader, encode_report
from tandemmq.replicator.settings import ReplicatorSettings
from tandemmq.replicator.slave.slave_dial import tls_context
from tandemmq.replicator.slave.slave_errors import BadStream, MasterSilent, MasterUnreachable

log = get_log(__name__)


class FirstFrame(NamedTuple):
    """The first frame that a master sends to somebody who asks for an offset."""

    offset: int
    has_data: bool


Ask = Callable[[int], Awaitable[FirstFrame]]


async def search_begin(ask: Ask, file_size: int) -> int | None:
    """Offset of the master's first file; None if its log is empty. Raises what `ask` raises."""
    last = await ask(0)
    if not last.has_data and not last.offset:
        return None
    low, high = 0, last.offset // file_size
    while low < high:
        middle = (low + high) // 2
        answer = await ask(max(middle * file_size, 1))
        if answer.has_data:
            high = middle
        else:
            low = middle + 1
    log.info("found where the master's log begins", offset=low * file_size)
    return low * file_size


def asking(settings: ReplicatorSettings, address: str, timers: Timers) -> Ask:
    """Asks the master at `host:port`, on a connection of its own for each question.

    Raises MasterUnreachable, MasterSilent, BadStream, UnreadableCertificate.
    """
    host, port = parse_host_port(address)
    patience = settings.ha_housekeeping_interval / 1000

    async def ask(offset: int) -> FirstFrame:
        context = tls_context(settings)
        try:
            async with time_limit(timers, settings.ha_connect_timeout / 1000):
                reader, writer = await asyncio.open_connection(host, port, ssl=context)
        except OSError as error:
            raise MasterUnreachable(f"cannot reach the master at {address}: {error}") from error
        try:
            writer.write(encode_report(offset))
            async with time_limit(timers, patience):
                header = await reader.readexactly(HEADER_SIZE)
        except (OSError, EOFError) as error:
            raise MasterSilent(f"the master at {address} says nothing when asked for offset {offset}") from error
        finally:
            writer.transport.abort()
        return _answer(header)

    return ask


def _answer(header: bytes) -> FirstFrame:
    """Raises BadStream."""
    frames = TransferReader()
    try:
        events = frames.feed(header)
    except BadFrame as error:
        raise BadStream(error.message) from error
    offset = events[0].offset if events else frames.next_offset
    return FirstFrame(offset, not events or isinstance(events[0], Body))
