"""Attendance: which clients are there by their heartbeats, and the streams on which they are asked."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator

from tandemmq.common.errors import TandemError
from tandemmq.delivery.v1 import delivery_pb2
from tandemmq.store.broker.errors import BadRequest, StoreStopping
from tandemmq.store.delivery.members.member_questions import MemberQuestion
from tandemmq.store.delivery.members.sessions import Command, Member, Peer, Sessions
from tandemmq.store.fronts.native import delivery_answers
from tandemmq.store.fronts.native.delivery_requests import check_heartbeat

HEARTBEAT_MS = 20_000
"""When the next heartbeat is expected: several may be lost before a client counts as gone."""

MOST_COMMANDS = 256
"""Commands that wait for one client to read them."""


class AttendStream:
    """One Attend call: a queue of commands for one client. A `Peer`."""

    def __init__(self) -> None:
        self._commands: asyncio.Queue[Command | TandemError | None] = asyncio.Queue()
        self._open = True

    def ask(self, command: Command) -> bool:
        """See `Peer.ask`."""
        if not self._open or self._commands.qsize() >= MOST_COMMANDS or isinstance(command, MemberQuestion):
            return False
        self._commands.put_nowait(command)
        return True

    def close(self, error: TandemError | None = None) -> None:
        """End the call after what was asked before; with an error, or as the client has."""
        if self._open:
            self._open = False
            self._commands.put_nowait(error)

    async def commands(self) -> AsyncGenerator[Command, None]:
        """What is asked, until the end. Raises what `close` was given."""
        while (command := await self._commands.get()) is not None:
            if isinstance(command, TandemError):
                raise command
            yield command


class Attendance:
    """Heartbeats of the clients of this front, told to Sessions."""

    def __init__(self, sessions: Sessions) -> None:
        self._sessions = sessions
        self._streams: set[AttendStream] = set()

    def heartbeat(self, request: delivery_pb2.HeartbeatRequest, address: str, peer: Peer | None = None) -> list[Member]:
        """A client is there; gives its members. `peer`: where it can be asked. Raises BadDelivery."""
        check_heartbeat(request)
        return [self._member(request, membership, address, peer) for membership in request.memberships]

    def _member(
        self,
        request: delivery_pb2.HeartbeatRequest,
        membership: delivery_pb2.Membership,
        address: str,
        peer: Peer | None,
    ) -> Member:
        known = self._sessions.get(membership.group, request.client_id, producer=membership.producer)
        subscriptions = {topic: given.expression or "*" for topic, given in membership.subscriptions.items()}
        if (
            known is not None
            and known.subscriptions == subscriptions
            and (peer is None or known.peer is peer)
            and self._sessions.heard_of(known)
        ):
            return known
        member = Member(
            client_id=request.client_id,
            group=membership.group,
            peer=known.peer if peer is None and known is not None else peer,
            producer=membership.producer,
            protocol="native",
            language=request.language,
            version=request.version,
            address=address,
            subscriptions=subscriptions,
        )
        self._sessions.register(member)
        return member

    def leave(self, client_id: str, group: str) -> None:
        """A client ends in one of its groups."""
        for producer in (False, True):
            member = self._sessions.get(group, client_id, producer=producer)
            if member is not None:
                self._sessions.unregister(member)

    def stop(self) -> None:
        """End all streams: the store stops."""
        for stream in tuple(self._streams):
            stream.close(StoreStopping("The store stops.", remedy="Attend again, there or at its successor."))

    async def attend(
        self, requests: AsyncIterator[delivery_pb2.HeartbeatRequest], address: str
    ) -> AsyncGenerator[delivery_pb2.AttendResponse, None]:
        """One Attend call: its answers. Raises BadRequest, BadDelivery, StoreStopping."""
        first = await anext(requests, None)
        if first is None:
            raise BadRequest("The first request of an Attend stream must say who attends.")
        stream = AttendStream()
        members = {_name(one): one for one in self.heartbeat(first, address, stream)}
        self._streams.add(stream)
        reader = asyncio.create_task(self._listen(requests, address, stream, members), name="attendance")
        try:
            yield delivery_pb2.AttendResponse(welcome=delivery_pb2.HeartbeatResponse(next_ms=HEARTBEAT_MS))
            async for command in stream.commands():
                yield delivery_answers.command(command)
        finally:
            reader.cancel()
            stream.close()
            self._streams.discard(stream)
            for member in members.values():
                self._sessions.unregister(member)

    async def _listen(
        self,
        requests: AsyncIterator[delivery_pb2.HeartbeatRequest],
        address: str,
        stream: AttendStream,
        members: dict[tuple[str, bool, str], Member],
    ) -> None:
        """Heartbeats until the client ends the stream."""
        try:
            async for request in requests:
                members.update((_name(one), one) for one in self.heartbeat(request, address, stream))
        except TandemError as error:
            stream.close(error)
        else:
            stream.close()


def _name(member: Member) -> tuple[str, bool, str]:
    return member.group, member.producer, member.client_id
