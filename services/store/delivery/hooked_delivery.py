"""Delivery with hooks around receives and around what consumers say. One without hooks is a plain `Delivery`."""

from collections.abc import Sequence
from functools import partial
from typing import Any

from tandemmq.common.errors import TandemError
from tandemmq.hooks import AcknowledgementContext, ConsumerSays, DeliveryContext
from tandemmq.store.broker.hook_calls import HookCalls
from tandemmq.store.broker.hooked_broker import delivered
from tandemmq.store.delivery.delivery import Delivery
from tandemmq.store.delivery.port import Batch, Outcome, Room, Wish
from tandemmq.store.delivery.receiving.handles import decode_handle


class HookedDelivery(Delivery):
    """Every call as in `Delivery`; each may raise HookRefused."""

    def __init__(self, hooks: HookCalls, *parts: Any) -> None:
        """`parts`: those of `Delivery`."""
        super().__init__(*parts)
        self._hooks = hooks

    async def receive(self, wish: Wish, room: Room | None = None) -> Batch:
        """See `port.DeliveryPort`."""
        context = DeliveryContext(topic=wish.topic, group=wish.group, queue_id=wish.queue, client_id=wish.client_id)

        def found(batch: Batch) -> None:
            context.read = lambda: [delivered(one.record, one.topic, one.number) for one in batch.messages]

        return await self._hooks.delivery.around(context, partial(super().receive, wish, room), found)

    def receive_at_once(self, wish: Wish, calls: int = 1) -> Sequence[Batch]:
        """See `port.AtOncePort`: never, hooks are asked."""
        return ()

    def acknowledge_at_once(
        self, group: str, topic: str, handles: Sequence[str], *, in_time: bool = False
    ) -> list[Outcome] | None:
        """See `port.AtOncePort`: never."""
        return None

    async def acknowledge(
        self, group: str, topic: str, handles: Sequence[str], *, in_time: bool = False
    ) -> list[Outcome]:
        """See `port.DeliveryPort`. What a hook refuses is refused for that handle alone."""
        refused: dict[int, Outcome] = {}
        asked: list[tuple[int, AcknowledgementContext]] = []
        for number, handle in enumerate(handles):
            context = _of_handle(group, topic, handle, ConsumerSays.DONE)
            try:
                self._hooks.acknowledgement.before(context)
            except TandemError as error:
                refused[number] = Outcome(handle, error)
            else:
                asked.append((number, context))
        try:
            handles_asked = [context.handle for _, context in asked]
            outcomes = await super().acknowledge(group, topic, handles_asked, in_time=in_time)
        except BaseException as error:
            for _, context in asked:
                self._hooks.acknowledgement.after(context, error)
            raise
        for (number, context), outcome in zip(asked, outcomes, strict=True):
            self._hooks.acknowledgement.after(context, outcome.error)
            refused[number] = outcome
        return [refused[number] for number in range(len(handles))]

    async def change_invisible(self, group: str, topic: str, handle: str, invisible_ms: int) -> str:
        """See `port.DeliveryPort`."""
        context = _of_handle(group, topic, handle, ConsumerSays.LATER)
        return await self._hooks.acknowledgement.around(
            context, partial(super().change_invisible, group, topic, handle, invisible_ms)
        )

    async def forward(self, group: str, topic: str, handle: str) -> None:
        """See `port.DeliveryPort`."""
        context = _of_handle(group, topic, handle, ConsumerSays.NEVER)
        await self._hooks.acknowledgement.around(context, partial(super().forward, group, topic, handle))

    async def send_back(self, group: str, physical_offset: int, delay_level: int, max_reconsume_times: int) -> None:
        """See `port.DeliveryPort`."""
        says = ConsumerSays.NEVER if delay_level < 0 else ConsumerSays.LATER
        context = AcknowledgementContext(topic="", group=group, says=says, log_offset=physical_offset)
        sending = partial(super().send_back, group, physical_offset, delay_level, max_reconsume_times)
        await self._hooks.acknowledgement.around(context, sending)

    async def commit(
        self, group: str, topic: str, queue: int, offset: int, *, alone: bool = False, back: bool = False
    ) -> None:
        """See `port.DeliveryPort`."""
        context = AcknowledgementContext(
            topic=topic, group=group, says=ConsumerSays.DONE_BELOW, queue_id=queue, queue_offset=offset
        )
        await self._hooks.acknowledgement.around(
            context, partial(super().commit, group, topic, queue, offset, alone=alone, back=back)
        )


def _of_handle(group: str, topic: str, handle: str, says: ConsumerSays) -> AcknowledgementContext:
    """A handle that cannot be read has no place; it is refused later."""
    context = AcknowledgementContext(topic=topic, group=group, says=says, handle=handle)
    try:
        read = decode_handle(handle, group, topic)
    except TandemError:
        return context
    context.queue_id, context.queue_offset = read.place.queue, read.offset
    return context
