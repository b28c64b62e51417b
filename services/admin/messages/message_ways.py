"""The way of a message: what its clients told in the topic of traces, beside what the brokers know."""

from collections.abc import Iterable, Sequence, Set
from itertools import islice
from typing import NamedTuple

from tandemmq.admin.errors import BadAdminRequest, CallRefused, NotFound
from tandemmq.admin.messages.messages import Messages
from tandemmq.admin.messages.reading import ask_all
from tandemmq.admin.v1 import admin_pb2
from tandemmq.common.topic_names import RETRY, dead_letter_topic
from tandemmq.common.wire.message_traces import TOPIC, TraceEntry, TraceKind, decode_traces

_MOST = 1000
"""Messages with traces that are read."""

_MOST_MESSAGES = 32
"""Messages that are looked up."""

_MOST_FOLLOWED, _MOST_GROUPS = 4, 16
"""Messages, and groups that consume one, of which copies are looked for."""

_AT_ONCE = 8
"""Questions of one trace that are asked at the same time; each goes to all brokers."""

_CONSUMPTIONS = (TraceKind.GIVEN, TraceKind.CONSUMED)


class ToldEntry(NamedTuple):
    """An entry, and the address of the client that sent it."""

    entry: TraceEntry
    client: str


class MessageWays:
    """Puts the way of a message together."""

    def __init__(self, messages: Messages) -> None:
        self._messages = messages

    async def trace(self, request: admin_pb2.TraceMessageRequest) -> admin_pb2.MessageTrace:
        """See admin.proto. Raises BadAdminRequest; NotFound if nobody knows of it; ServiceAway."""
        key = request.key.strip()
        if not key:
            raise BadAdminRequest("key is missing: a key of the message, or one of its ids")
        by_id = await self._find(admin_pb2.FindMessagesRequest(message_id=key))
        names = list(dict.fromkeys([key, *(one.message.unique_key for one in by_id.messages)]))
        answer = admin_pb2.MessageTrace()
        told: list[ToldEntry] = []
        for name in names:
            told += await self._told(name, request.trace_topic or TOPIC, answer)
        told = [one for one in told if not set(names).isdisjoint(_names_of(one.entry))]
        answer.steps.extend(steps_of(told))
        found = [*by_id.messages, *await self._stored(told, request.topic, key)]
        found += await self._copies(found, {one.entry.group for one in told if one.entry.kind in _CONSUMPTIONS} - {""})
        answer.messages.extend({(one.broker, one.message.physical_offset): one for one in found}.values())
        if not answer.steps and not answer.messages:
            where = f"; topic {request.topic} has no such message" if request.topic else "; name its topic"
            raise NotFound(f"no client has told of {key}, or what it told has expired{where}")
        return answer

    async def _told(self, name: str, topic: str, answer: admin_pb2.MessageTrace) -> list[ToldEntry]:
        page = await self._find(admin_pb2.FindMessagesRequest(topic=topic, key=name, with_bodies=True, limit=_MOST))
        answer.more = answer.more or page.more
        told = []
        for one in page.messages:
            traces = decode_traces(one.message.body)
            answer.unreadable += traces.unreadable
            told += [ToldEntry(entry, entry.client_host or one.message.born_host) for entry in traces.entries]
        return told

    async def _stored(self, told: Iterable[ToldEntry], topic: str, key: str) -> list[admin_pb2.FoundMessage]:
        places = {(one.entry.topic, one.entry.message_id) for one in told if one.entry.kind is TraceKind.SENT}
        found = await self._unique(sorted(places)[:_MOST_MESSAGES])
        if topic and not found:
            by_key = await self._find(admin_pb2.FindMessagesRequest(topic=topic, key=key, limit=_MOST_MESSAGES))
            keys = [one.message.unique_key for one in by_key.messages[:_MOST_MESSAGES]]
            found = await self._unique([(topic, one) for one in (key, *keys)])  # only that says who has consumed them
        return found

    async def _unique(self, places: Iterable[tuple[str, str]]) -> list[admin_pb2.FoundMessage]:
        """The messages of topics and unique keys, in this order."""
        wanted = [admin_pb2.FindMessagesRequest(topic=topic, unique_key=key) for topic, key in places]
        return [one for page in await ask_all(wanted, self._find, _AT_ONCE) for one in page.messages]

    async def _copies(
        self, found: Sequence[admin_pb2.FoundMessage], consumers: Set[str]
    ) -> list[admin_pb2.FoundMessage]:
        """Those of messages that groups have failed on: in their retry topics, on the way there, or dead letters.

        A group may have told of a consumption before the broker knows how far it has come: these are the consumers.
        """
        some = {(one.message.topic, one.message.unique_key): one for one in found if one.message.unique_key}
        wanted = [
            admin_pb2.FindMessagesRequest(topic=topic, unique_key=one.message.unique_key)
            for one in islice(some.values(), _MOST_FOLLOWED)
            for group in _groups_of(one, consumers)[:_MOST_GROUPS]
            for topic in (RETRY + group, dead_letter_topic(group))
        ]
        return [one for page in await ask_all(wanted, self._copies_at, _AT_ONCE) for one in page.messages]

    async def _copies_at(self, request: admin_pb2.FindMessagesRequest) -> admin_pb2.FindMessagesResponse:
        try:
            return await self._find(request)
        except CallRefused:  # there is no such topic
            return admin_pb2.FindMessagesResponse()

    async def _find(self, request: admin_pb2.FindMessagesRequest) -> admin_pb2.FindMessagesResponse:
        """What there is; nothing where the topic is not there, or the key is no id."""
        try:
            return await self._messages.find(request)
        except (NotFound, BadAdminRequest):
            return admin_pb2.FindMessagesResponse()
        except CallRefused as error:
            if error.code in ("NOT_FOUND", "INVALID_ARGUMENT"):
                return admin_pb2.FindMessagesResponse()
            raise


def _groups_of(one: admin_pb2.FoundMessage, consumers: Set[str]) -> list[str]:
    return sorted({*consumers, *one.consumed_by, *(standing.group for standing in one.standings)})


def steps_of(told: Iterable[ToldEntry]) -> list[admin_pb2.TraceStep]:
    """Entries as steps, by time: what a consumer told before and after is one step. What came twice counts once."""
    unique = dict.fromkeys(told)
    ends = {_consumption(one.entry): one for one in unique if one.entry.kind is TraceKind.CONSUMED}
    steps = []
    for one in unique:
        entry = one.entry
        if entry.kind is TraceKind.SENT:
            steps.append(_step(one, admin_pb2.PUBLISHED, "success" if entry.success else "failed"))
        elif entry.kind is TraceKind.TRANSACTION:
            steps.append(_step(one, admin_pb2.TRANSACTION_ENDED, entry.transaction_state))
        elif entry.kind is TraceKind.GIVEN:
            end = ends.pop(_consumption(entry), None)
            step = _step(one, admin_pb2.CONSUMED, "" if end is None else _outcome(end.entry))
            if end is not None:
                step.cost_ms = end.entry.cost_ms
            steps.append(step)
    steps += [_step(one, admin_pb2.CONSUMED, _outcome(one.entry)) for one in ends.values()]
    return sorted(steps, key=lambda step: step.time_ms)


def _step(one: ToldEntry, kind: admin_pb2.TraceStepKind.ValueType, status: str) -> admin_pb2.TraceStep:
    entry = one.entry
    return admin_pb2.TraceStep(
        kind=kind,
        time_ms=entry.time_ms,
        message_id=entry.message_id,
        topic=entry.topic,
        group=entry.group,
        client=one.client,
        cost_ms=entry.cost_ms,
        status=status,
        message_type=entry.message_type,
        retry_times=entry.retry_times,
        keys=entry.keys.split(),
        tag=entry.tags,
        store_host=entry.store_host,
        from_check=entry.from_check,
    )


def _outcome(entry: TraceEntry) -> str:
    return entry.outcome or ("success" if entry.success else "failed")


def _consumption(entry: TraceEntry) -> tuple[str, str]:
    return entry.request_id, entry.message_id


def _names_of(entry: TraceEntry) -> set[str]:
    return {entry.message_id, entry.offset_message_id, *entry.keys.split()}
