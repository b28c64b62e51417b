"""A broker with hooks around its sends and pulls. One without hooks is a plain `Broker`, at no cost."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from types import MappingProxyType

from tandemmq.common.errors import TandemError
from tandemmq.hooks import DeliveredMessage, DeliveryContext, SendContext
from tandemmq.store.broker.broker import Broker
from tandemmq.store.broker.errors import IllegalMessage
from tandemmq.store.broker.group_transfer import PutStatus
from tandemmq.store.broker.hook_calls import HookCalls
from tandemmq.store.broker.long_poll import Room
from tandemmq.store.broker.pulled import PullAnswer, Wanted
from tandemmq.store.broker.send import NewBatch, NewMessage, Ready, SendOutcome, SentAll, SentBatch
from tandemmq.store.broker.submission import Receipt, Told
from tandemmq.store.format import properties
from tandemmq.store.format.batch import decode_client_batch
from tandemmq.store.format.errors import FormatError
from tandemmq.store.format.record import decode_record, split_records
from tandemmq.store.log.segments.commit_log import Appended, AppendedBatch


@dataclass(frozen=True, slots=True, kw_only=True)
class HookedBroker(Broker):
    """Every call as in `Broker`; each may raise HookRefused.

    What becomes of messages hooks are told by those who know it, disk and replicas, and not by whoever waits for the
    answer: that may be a client which goes away.
    """

    hooks: HookCalls

    async def send(self, given: NewMessage, *, wait: bool = True) -> Receipt:
        """See `Broker.send`."""
        outcome: asyncio.Future[Receipt] = asyncio.get_running_loop().create_future()

        def told(_: int, what: Receipt | TandemError) -> None:
            if outcome.done():  # nobody waits for it any more
                return
            if isinstance(what, TandemError):
                outcome.set_exception(what)
            else:
                outcome.set_result(what)

        self.submit([given], told, wait=wait)
        return await outcome

    def store_at_once(self, given: NewMessage, *, wait: bool = True) -> tuple[Ready, Appended] | None:
        """See `Broker.store_at_once`: never, since hooks are called."""
        return None

    async def append(
        self, messages: Sequence[NewMessage], batches: Sequence[NewBatch], *, wait: bool = True
    ) -> SentAll:
        """See `Broker.append`. A hook that refuses one message refuses all."""
        each = [[_of_message(given)] for given in messages] + [_of_batch(given) for given in batches]
        asked: list[SendContext] = []
        try:
            for context in (one for contexts in each for one in contexts):
                self.hooks.send.before(context)
                asked.append(context)
            sent = await Broker.append(self, messages, batches, wait=wait)
        except BaseException as error:
            for context in asked:
                self.hooks.send.after(context, error)
            raise
        stored: list[SendContext] = []
        outcomes: list[SendOutcome | SentBatch] = [*sent.messages, *sent.batches]
        for contexts, outcome in zip(each, outcomes, strict=True):
            if outcome.place is None:
                for context in contexts:
                    self.hooks.send.after(context, outcome.failure)
                continue
            if isinstance(outcome, SentBatch):
                _are_at(contexts, outcome.batch.queue_id, outcome.place)
            else:
                _is_at(contexts[0], outcome.ready.queue_id, outcome.place, outcome.ready.unique_key)
            stored += contexts
        if stored:
            self._tell_when_safe(sent, stored)
        return sent

    def _tell_when_safe(self, sent: SentAll, stored: Sequence[SendContext]) -> None:
        def safe(status: PutStatus) -> None:
            for context in stored:
                context.status = status.name
                self.hooks.send.after(context)

        try:
            self.acknowledgement.when_safe(sent.end_offset, safe, wait=sent.wait)
        except TandemError as error:  # `acknowledged` raises it
            for context in stored:
                self.hooks.send.after(context, error)

    def submit(self, items: Sequence[NewMessage], told: Told, *, wait: bool = True) -> None:
        """See `Broker.submit`."""
        taken: list[tuple[int, SendContext]] = []
        passed: list[NewMessage] = []
        refused: list[tuple[int, TandemError]] = []
        for number, given in enumerate(items):
            context = _of_message(given)
            try:
                self.hooks.send.before(context)
            except TandemError as error:
                refused.append((number, error))
                continue
            taken.append((number, context))
            passed.append(given)

        def hooked(number: int, outcome: Receipt | TandemError) -> None:
            at, context = taken[number]
            if isinstance(outcome, TandemError):
                self.hooks.send.after(context, outcome)
            else:
                _is_stored(context, outcome)
                self.hooks.send.after(context)
            told(at, outcome)

        for refusal in refused:
            told(*refusal)
        Broker.submit(self, passed, hooked, wait=wait)

    async def pull(self, wanted: Wanted, wait_seconds: float = 0, room: Room | None = None) -> PullAnswer:
        """See `Broker.pull`."""
        context = DeliveryContext(topic=wanted.topic, group=wanted.group, queue_id=wanted.queue_id, pulls=True)

        def found(pulled: PullAnswer) -> None:
            context.read = lambda: [delivered(one) for one in split_records(pulled.records)]

        return await self.hooks.delivery.around(context, partial(Broker.pull, self, wanted, wait_seconds, room), found)

    def pull_at_once(self, wanted: Wanted) -> PullAnswer | None:
        """See `Broker.pull_at_once`: hooks may wait."""
        return None


def delivered(record: bytes, topic: str = "", attempt: int = 0) -> DeliveredMessage:
    """What hooks are told of a record. `topic`: as which topic's message it is given out."""
    read = decode_record(record, verify=False)
    key = properties.decode(read.properties_bytes).get(properties.UNIQ_KEY, "")
    where = (read.queue_id, read.queue_offset, read.physical_offset)
    return DeliveredMessage(topic or read.topic, *where, key, len(read.body), attempt)


def _of_message(given: NewMessage) -> SendContext:
    return SendContext(
        topic=given.topic,
        properties=MappingProxyType(dict(given.properties)),
        body=given.body,
        born_host=str(given.born_host),
        queue_id=given.queue_id,
        message_id=given.properties.get(properties.UNIQ_KEY) or "",
    )


def _of_batch(given: NewBatch) -> list[SendContext]:
    """Each message of it. Raises IllegalMessage."""
    try:
        messages = decode_client_batch(given.blob)
    except FormatError as error:
        raise IllegalMessage(f"The encoded batch cannot be stored: {error}.") from None
    found = []
    for one in messages:
        given_properties = properties.decode(one.properties)
        found.append(
            SendContext(
                topic=given.topic,
                properties=MappingProxyType(given_properties),
                body=one.body,
                born_host=str(given.born_host),
                queue_id=given.queue_id,
                message_id=given_properties.get(properties.UNIQ_KEY, ""),
            )
        )
    return found


def _is_stored(context: SendContext, receipt: Receipt) -> None:
    _is_at(context, receipt.ready.queue_id, receipt.place, receipt.ready.unique_key)
    context.status = receipt.status.name


def _is_at(context: SendContext, queue_id: int, place: Appended, message_id: str) -> None:
    context.queue_id, context.queue_offset = queue_id, place.queue_offset
    context.log_offset, context.message_id = place.physical_offset, message_id


def _are_at(contexts: Sequence[SendContext], queue_id: int, place: AppendedBatch) -> None:
    for number, (context, offset) in enumerate(zip(contexts, place.physical_offsets, strict=True)):
        context.queue_id, context.queue_offset = queue_id, place.first_queue_offset + number
        context.log_offset = offset
