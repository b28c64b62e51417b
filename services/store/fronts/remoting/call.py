"""Call: one request on its way to an answer: who makes it, what it says, what it may do."""

import time
from collections.abc import Awaitable, Callable, Mapping
from functools import lru_cache

from tandemmq.common.access.needs import Need
from tandemmq.common.access.principal import Principal
from tandemmq.common.net.remoting.connection import RemotingConnection
from tandemmq.common.wire.remoting.codes import ResponseCode, name_of
from tandemmq.common.wire.remoting.command import Body, Command
from tandemmq.common.wire.remoting.fields import Fields
from tandemmq.store.format.host import Host, IllegalHost

_NOBODY = Host(bytes(4), 0)


class RemotingCall:
    """What a handler is given."""

    __slots__ = ("begun", "command", "connection", "fields", "principal", "said")

    def __init__(self, command: Command, connection: RemotingConnection) -> None:
        self.command = command
        self.connection = connection
        self.fields = Fields(command.fields)
        self.principal: Principal | None = None
        """Who was recognized; None where everybody may do everything."""
        self.said: Mapping[str, str] | None = None
        """Header fields of a refusal."""
        self.begun = time.perf_counter()

    @property
    def body(self) -> bytes:
        """The request's body."""
        return bytes(self.command.body)

    @property
    def name(self) -> str:
        """The request code's name."""
        return name_of(self.command.code)

    @property
    def peer(self) -> Host:
        """Where the connection comes from."""
        return host_of(self.connection.peer)

    def demand(self, *needs: Need) -> None:
        """All of them. Raises PermissionDenied."""
        if self.principal is not None:
            self.principal.demand(needs, self.name)

    def may(self, need: Need) -> bool:
        """Whether the caller may do that."""
        return self.principal is None or self.principal.may(need)

    def ok(self, fields: Mapping[str, object] | None = None, body: Body = b"") -> Command:
        """An answer that says SUCCESS."""
        return self.reply(ResponseCode.SUCCESS, None, fields, body)

    def reply(
        self, code: int, remark: str | None = None, fields: Mapping[str, object] | None = None, body: Body = b""
    ) -> Command:
        """An answer. Values of `fields` are written as texts."""
        texts = None if fields is None else {name: _text(value) for name, value in fields.items()}
        return self.command.answer(code, texts, body, remark)


Handler = Callable[[RemotingCall], "Awaitable[Command | None] | Command | None"]
"""Answers a request. A plain function must not wait; where it gives None, it has the answer sent later by itself."""


@lru_cache(maxsize=4096)
def host_of(peer: str) -> Host:
    """The address of a connection, of its text; nobody's where it is none."""
    try:
        return Host.parse(peer)
    except IllegalHost:
        return _NOBODY


def _text(value: object) -> str:
    """As Java writes it."""
    if value is True:
        return "true"
    return "false" if value is False else str(value)
