"""Telemetry: the stream on which a client says its settings, and is asked: about transactions, and by operators.

A stream that is full counts as one that takes no commands: some clients stop to read theirs.
"""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from typing import Any

from tandemmq.common.access.needs import group as use_group
from tandemmq.common.access.needs import publish, subscribe
from tandemmq.common.errors import TandemError
from tandemmq.common.timers import Timer, Timers
from tandemmq.rocketmq5.v2 import resources_pb2 as pb
from tandemmq.rocketmq5.v2 import settings_pb2, telemetry_pb2
from tandemmq.store.delivery.members.member_questions import MemberAnswer, ShowThreads, TryMessage
from tandemmq.store.delivery.members.sessions import CheckTransaction, Command
from tandemmq.store.fronts.rocketmq5.call import FrontCall
from tandemmq.store.fronts.rocketmq5.client_settings import SettingsAnswers
from tandemmq.store.fronts.rocketmq5.clients import Clients
from tandemmq.store.fronts.rocketmq5.given_message import checked_message, tried_message
from tandemmq.store.fronts.rocketmq5.statuses import OK, ProtocolRefusal, status_of

MOST_COMMANDS = 256
"""Commands that wait for one client to read them."""
MOST_TOPICS = 1_000
MOST_SETTINGS_BYTES = 256 << 10
MOST_CLIENT_PROPERTIES = 32
MOST_PROPERTIES_BYTES = 4 << 10
LONGEST_PROPERTY_NAME, LONGEST_PROPERTY = 64, 256

AGAIN_SECONDS = (1.0, 10.0)
"""The settings are said again so long after a stream's first ones: a client that was not ready for them would hang."""


_Sent = telemetry_pb2.TelemetryCommand | CheckTransaction | ShowThreads | TryMessage


class TelemetryStream:
    """One stream, as what is sent on it. A `Peer`."""

    def __init__(self, namespace: str, most_body: int) -> None:
        self._namespace = namespace
        self._most_body = most_body
        self._commands: asyncio.Queue[_Sent | None] = asyncio.Queue()
        self._open = True

    def ask(self, command: Command) -> bool:
        """See `Peer.ask`. That a group has changed, or its offsets were reset, is no news to these clients."""
        if isinstance(command, CheckTransaction | ShowThreads | TryMessage):
            return self._put(command)
        return self._open

    def send(self, command: telemetry_pb2.TelemetryCommand) -> bool:
        """Put a command on its way; False where the stream is full or has ended."""
        return self._put(command)

    def _put(self, command: _Sent) -> bool:
        if not self._open or self._commands.qsize() >= MOST_COMMANDS:
            return False
        self._commands.put_nowait(command)
        return True

    def close(self) -> None:
        """End the stream after what was sent before."""
        if self._open:
            self._open = False
            self._commands.put_nowait(None)

    async def commands(self) -> AsyncGenerator[telemetry_pb2.TelemetryCommand, None]:
        """What is sent, until the end."""
        while (command := await self._commands.get()) is not None:
            yield command if isinstance(command, telemetry_pb2.TelemetryCommand) else await self._question(command)

    async def _question(self, command: CheckTransaction | ShowThreads | TryMessage) -> telemetry_pb2.TelemetryCommand:
        """As the client is to get it; a body may be large."""
        if isinstance(command, CheckTransaction):
            half = await checked_message(command, self._namespace, self._most_body)
            orphan = telemetry_pb2.RecoverOrphanedTransactionCommand(message=half, transaction_id=command.handle)
            return telemetry_pb2.TelemetryCommand(status=OK, recover_orphaned_transaction_command=orphan)
        if isinstance(command, ShowThreads):
            threads = telemetry_pb2.PrintThreadStackTraceCommand(nonce=command.nonce)
            return telemetry_pb2.TelemetryCommand(status=OK, print_thread_stack_trace_command=threads)
        message = await tried_message(command, self._namespace, self._most_body)
        verify = telemetry_pb2.VerifyMessageCommand(nonce=command.nonce, message=message)
        return telemetry_pb2.TelemetryCommand(status=OK, verify_message_command=verify)


class Telemetry:
    """All streams of this front."""

    def __init__(self, clients: Clients, answers: SettingsAnswers, timers: Timers) -> None:
        self._clients = clients
        self._answers = answers
        self._timers = timers
        self._streams: set[TelemetryStream] = set()

    def stop(self) -> None:
        """The store ends: clients are told to connect anew, and the streams end."""
        for stream in tuple(self._streams):
            reconnect = telemetry_pb2.ReconnectEndpointsCommand(nonce="restart")
            stream.send(telemetry_pb2.TelemetryCommand(status=OK, reconnect_endpoints_command=reconnect))
            stream.close()

    async def serve(
        self, requests: AsyncIterator[telemetry_pb2.TelemetryCommand], call: FrontCall
    ) -> AsyncGenerator[telemetry_pb2.TelemetryCommand, None]:
        """One call."""
        caller = call.caller
        stream = TelemetryStream(caller.namespace, self._answers.most_body)
        self._streams.add(stream)
        reader = asyncio.create_task(self._read(requests, stream, call), name="telemetry")
        try:
            async for command in stream.commands():
                yield command
        finally:
            reader.cancel()
            stream.close()
            self._streams.discard(stream)
            self._clients.stream_ended(caller, stream)

    async def _read(
        self, requests: AsyncIterator[telemetry_pb2.TelemetryCommand], stream: TelemetryStream, call: FrontCall
    ) -> None:
        """What the client says, until it ends its side."""
        again: list[Timer] = []
        try:
            async for command in requests:
                if command.WhichOneof("command") != "settings":
                    self._hear(command)
                    continue
                answer = await self._settle(command.settings, stream, call)
                if answer is not None and not again:
                    again = [
                        self._timers.call_later(seconds, self._say_again, stream, call) for seconds in AGAIN_SECONDS
                    ]
        finally:
            for timer in again:
                timer.cancel()
            stream.close()

    def _hear(self, command: telemetry_pb2.TelemetryCommand) -> None:
        """The answer to an operator's question; some clients send the question back with a status."""
        code = pb.Code.Name(command.status.code) if command.status.code in pb.Code.values() else "UNSUPPORTED"
        kind = command.WhichOneof("command")
        if kind == "thread_stack_trace":
            stack = command.thread_stack_trace
            self._clients.answered(stack.nonce, MemberAnswer(code, stack.thread_stack_trace))
        elif kind in ("verify_message_result", "verify_message_command"):
            self._clients.answered(getattr(command, kind).nonce, MemberAnswer(code, command.status.message))

    def _say_again(self, stream: TelemetryStream, call: FrontCall) -> None:
        client = self._clients.get(call.caller)
        if client is not None and client.peer is stream and client.settings is not None:
            group = client.settings.subscription.group
            name = call.group(group) if group.name else None
            stream.send(_told(self._answers.answer(client.settings, name)))

    async def _settle(
        self, settings: settings_pb2.Settings, stream: TelemetryStream, call: FrontCall
    ) -> settings_pb2.Settings | None:
        """Take a client's settings over and answer them; a refusal is answered too."""
        try:
            _check(settings)
            group = self._take(settings, stream, call)
            await self._answers.prepare(group)
        except TandemError as error:
            stream.send(telemetry_pb2.TelemetryCommand(status=status_of(error)))
            return None
        answer = self._answers.answer(settings, group)
        stream.send(_told(answer))
        return answer

    def _take(self, settings: settings_pb2.Settings, stream: TelemetryStream, call: FrontCall) -> str | None:
        """Note who the client is and what it wants; gives its group. Raises ProtocolRefusal, PermissionDenied."""
        caller, case = call.caller, settings.WhichOneof("pub_sub")
        if case == "subscription":
            wanted = settings.subscription
            group = call.group(wanted.group) if wanted.HasField("group") and wanted.group.name else None
            subscriptions = {call.topic(one.topic): one.expression.expression or "*" for one in wanted.subscriptions}
            call.demand(*(subscribe(topic) for topic in subscriptions))
            if group is not None:
                call.demand(use_group(group))
            self._note(settings, stream, call)
            if group is not None:
                self._clients.member(caller, group, producer=False, subscriptions=subscriptions)
            return group
        if case != "publishing":
            raise ProtocolRefusal(
                pb.UNRECOGNIZED_CLIENT_TYPE, "The settings are neither a producer's nor a consumer's."
            )
        topics = [call.topic(topic) for topic in settings.publishing.topics]
        call.demand(*map(publish, topics))
        self._note(settings, stream, call)
        for topic in topics:
            self._clients.member(caller, topic, producer=True)
        return None

    def _note(self, settings: settings_pb2.Settings, stream: TelemetryStream, call: FrontCall) -> None:
        client = self._clients.of(call.caller)
        client.settings = settings
        if client.peer is not stream:
            self._clients.stream(call.caller, stream)
            self._clients.heard_of(call.caller)


def _told(settings: settings_pb2.Settings) -> telemetry_pb2.TelemetryCommand:
    return telemetry_pb2.TelemetryCommand(status=OK, settings=settings)


def _check(settings: settings_pb2.Settings) -> None:
    """Bounds of what is remembered of one client. Raises ProtocolRefusal."""
    named = settings.publishing.topics if settings.HasField("publishing") else settings.subscription.subscriptions
    entries: Any = settings.client_properties
    if settings.ByteSize() > MOST_SETTINGS_BYTES:
        raise ProtocolRefusal(
            pb.BAD_REQUEST,
            f"The settings have {settings.ByteSize():,} bytes: at most {MOST_SETTINGS_BYTES:,} are remembered.",
        )
    if len(named) > MOST_TOPICS:
        raise ProtocolRefusal(
            pb.BAD_REQUEST, f"The settings name {len(named):,} topics: at most {MOST_TOPICS:,} may be."
        )
    size = sum(len(name) + len(value) for name, value in entries.items())
    long = any(len(name) > LONGEST_PROPERTY_NAME or len(value) > LONGEST_PROPERTY for name, value in entries.items())
    if len(entries) > MOST_CLIENT_PROPERTIES or size > MOST_PROPERTIES_BYTES or long:
        raise ProtocolRefusal(
            pb.INVALID_CLIENT_PROPERTIES,
            f"The client has {len(entries)} properties of {size:,} characters: that is too much.",
        )
