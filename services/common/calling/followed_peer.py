"""FollowedPeer: another process with which a service keeps in touch: attempt after attempt, told in the same words."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing
from typing import NoReturn

import grpc

from tandemmq.common.calling.backoff import Backoff
from tandemmq.common.errors import TandemError
from tandemmq.common.log_output import get_log

log = get_log(__name__)


class FollowedPeer:
    """Whether a peer is there. The log hears when it comes, when it goes, and when the reason is another one."""

    def __init__(self, peer: str, name: str, changed: Callable[[], None] = lambda: None, patience: int = 0) -> None:
        """`peer`: what it is, as "store"; `name`: which of them, as its address. Log and metrics show both.

        `changed` is called after it has come or gone. The log does not hear of so many failures in a row as `patience`
        says: services of a node start at the same time.
        """
        self.peer = peer
        self.name = name
        self._changed = changed
        self._patience = patience
        self.failures = 0
        """In a row."""
        self._told = ""
        """The reason that the log has heard."""
        self.there = False
        self.problem = ""
        """Why it is away; empty while it is there, and before the first attempt has ended."""

    def came(self, **said: object) -> None:
        """It is there. The log shows what it `said`."""
        if self.there:
            return
        self.there, self.problem = True, ""
        self.failures, self._told = 0, ""
        log.info("peer is there", peer=self.peer, name=self.name, **said)
        self._changed()

    def gone(self, reason: str) -> None:
        """It is away."""
        self.there, self.problem = False, reason
        self.failures += 1
        if self.failures > self._patience and reason != self._told:
            self._told = reason
            log.warning("peer is away", peer=self.peer, name=self.name, reason=reason)
        self._changed()

    async def follow(
        self,
        attempt: Callable[[], AsyncGenerator[None, None]],
        backoff: Backoff,
        pause: Callable[[float], Awaitable[object]] = asyncio.sleep,
    ) -> NoReturn:
        """Make attempts until cancelled. One that ends, however it does, is made again after a pause.

        `attempt` yields whenever something has succeeded: the pauses begin anew. `pause` waits for so many seconds.
        """
        while True:
            try:
                async with aclosing(attempt()) as successes:
                    async for _ in successes:
                        backoff.reset()
                self.gone("it has ended the call")
            except grpc.aio.AioRpcError as error:
                self.gone(error.details() or error.code().name)
            except TandemError as error:
                self.gone(error.explain())
            except (OSError, TimeoutError) as error:
                self.gone(str(error) or type(error).__name__)
            except Exception as error:  # noqa: BLE001 - the next attempt may go well, and nobody else would make it
                log.failure("an attempt failed", error, peer=self.peer, name=self.name)
                self.gone(str(error) or type(error).__name__)
            await pause(backoff.pause())
