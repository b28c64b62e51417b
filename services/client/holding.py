"""Holding: the messages that a consumer has and has not settled, and the calls that keep and settle them."""

import asyncio
import logging
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from tandemmq.client.cluster import Cluster
from tandemmq.client.errors import ClientError, ClientFault, RequestFailed, from_refusal
from tandemmq.delivery.v1 import delivery_pb2

log = logging.getLogger("tandemmq.client")

MOST_HANDLES = 1024
"""Of one request."""


@dataclass(slots=True, eq=False)
class Held:
    """One message that was given to us."""

    handle: str
    until: float
    """By the timers of the cluster: when the broker gives it to somebody else."""


class Holding:
    """For one group and topic. Everything is tried again while it may be of use: as long as messages stay ours."""

    def __init__(
        self,
        cluster: Cluster,
        group: str,
        topic: str,
        invisible: float,
        settled: Callable[[str], None] = lambda ending: None,
    ) -> None:
        """`invisible`: seconds for which messages stay ours without a word of us. `settled` hears how each ends."""
        self._settled = settled
        self._cluster = cluster
        self._group = group
        self._topic = topic
        self._invisible = invisible
        self._held: set[Held] = set()
        self._waiting: list[tuple[Held, asyncio.Future[None]]] = []
        self._sending: asyncio.Task[None] | None = None

    def __len__(self) -> int:
        return len(self._held)

    def take(self, handle: str, invisible_ms: int) -> Held:
        """A message was given to us."""
        held = Held(handle, self._cluster.timers.time() + invisible_ms / 1000)
        self._held.add(held)
        return held

    # -- settling ---------------------------------------------------------------------------------------------------

    async def acknowledge(self, held: Held) -> None:
        """It is dealt with. Those of one turn, and those that come while others are on their way, share a request.

        Raises NoLongerHeld, RequestFailed, StoreUnreachable.
        """
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append((held, done))
        if self._sending is None or self._sending.done():
            self._sending = asyncio.create_task(self._send_acknowledgements(), name="acknowledge")
        await done

    async def _send_acknowledgements(self) -> None:
        while self._waiting:
            batch, self._waiting = self._waiting[:MOST_HANDLES], self._waiting[MOST_HANDLES:]
            request = delivery_pb2.AcknowledgeRequest(
                group=self._group, topic=self._topic, handles=[held.handle for held, _ in batch]
            )
            try:
                answer = await self._cluster.call(
                    lambda stubs: stubs.delivery.Acknowledge,
                    request,
                    delivery_pb2.AcknowledgeResponse,
                    keep_trying=self._invisible,
                )
                settled = list(zip(batch, answer.outcomes, strict=True))
            except Exception as error:  # noqa: BLE001 - whatever it was, raised where it is waited for
                failed = error if isinstance(error, ClientError) else ClientFault("Acknowledging", error)
                for _, done in batch:
                    _fail(done, failed)
                continue
            for (held, done), outcome in settled:
                self._held.discard(held)
                if not outcome.HasField("refusal"):
                    self._settled("acknowledged")
                    if not done.done():
                        done.set_result(None)
                else:
                    _fail(done, _error(outcome))

    async def postpone(self, held: Held, seconds: float) -> None:
        """It comes again in so many seconds. Raises NoLongerHeld, RequestFailed, StoreUnreachable."""
        self._held.discard(held)
        for outcome in await self._change([held], seconds, self._invisible):
            if outcome.HasField("refusal"):
                raise _error(outcome)
            self._settled("retried")

    async def forward(self, held: Held) -> None:
        """It goes to the dead letters. Raises NoLongerHeld, RequestFailed, StoreUnreachable."""
        answer = await self._cluster.call(
            lambda stubs: stubs.delivery.ForwardToDeadLetters,
            delivery_pb2.ForwardToDeadLettersRequest(group=self._group, topic=self._topic, handles=[held.handle]),
            delivery_pb2.ForwardToDeadLettersResponse,
            keep_trying=self._invisible,
        )
        self._held.discard(held)
        if answer.outcomes[0].HasField("refusal"):
            raise _error(answer.outcomes[0])
        self._settled("dead")

    async def give_back(self, given: Iterable[Held]) -> None:
        """Nobody has looked at them: others may have them at once, and it does not count as a delivery.

        What cannot be told comes again by itself.
        """
        back = list(given)
        self._held.difference_update(back)
        try:
            for at in range(0, len(back), MOST_HANDLES):
                await self._change(back[at : at + MOST_HANDLES], 0.0, keep_trying=2.0, unseen=True)
        except ClientError as error:
            log.info("%d messages come again when their time is over: %s", len(back), error)

    def let_go(self, held: Held) -> None:
        """It is renewed no more."""
        self._held.discard(held)

    # -- keeping ----------------------------------------------------------------------------------------------------

    async def keep(self) -> None:
        """Renew what is held, for ever."""
        while True:
            await self._cluster.timers.sleep(self._invisible / 4)
            soon = self._cluster.timers.time() + self._invisible / 2
            due = [one for one in self._held if one.until < soon]
            for at in range(0, len(due), MOST_HANDLES):
                try:
                    await self._renew(due[at : at + MOST_HANDLES])
                except ClientError as error:
                    log.warning("%d messages could not be renewed, and may come again: %s", len(due), error)

    async def _renew(self, due: Sequence[Held]) -> None:
        outcomes = await self._change(due, self._invisible, self._invisible / 4)
        for held, outcome in zip(due, outcomes, strict=True):
            if outcome.HasField("refusal"):
                if held in self._held:  # else it was settled meanwhile
                    self._held.discard(held)
                    log.warning("a message of %s is no longer ours: %s", self._topic, outcome.refusal.message)
            else:
                held.handle, held.until = outcome.handle or held.handle, self._cluster.timers.time() + self._invisible

    async def _change(
        self, given: Sequence[Held], seconds: float, keep_trying: float, *, unseen: bool = False
    ) -> Sequence[delivery_pb2.Outcome]:
        milliseconds = round(seconds * 1000)
        changes = [
            delivery_pb2.InvisibleChange(handle=one.handle, invisible_ms=milliseconds, unseen=unseen) for one in given
        ]
        answer = await self._cluster.call(
            lambda stubs: stubs.delivery.ChangeInvisible,
            delivery_pb2.ChangeInvisibleRequest(group=self._group, topic=self._topic, changes=changes),
            delivery_pb2.ChangeInvisibleResponse,
            keep_trying=keep_trying,
        )
        return answer.outcomes


def _error(outcome: delivery_pb2.Outcome) -> RequestFailed:
    return from_refusal(outcome.refusal)


def _fail(done: "asyncio.Future[None]", error: ClientError) -> None:
    if not done.done():
        done.set_exception(error)
