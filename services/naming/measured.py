"""Handlers that are measured: what is asked, how long the answer takes, and what it is."""

import time
from collections.abc import Callable, Mapping

from tandemmq.common.errors import TandemError
from tandemmq.common.net.remoting.connection import RemotingConnection
from tandemmq.common.net.remoting.handlers import Answer, Handler
from tandemmq.common.wire.remoting.codes import RequestCode, ResponseCode
from tandemmq.common.wire.remoting.command import Command

Called = Callable[[str, str, float], None]
"""Hears the name of a request, of its response, and the seconds."""

PlainHandler = Callable[[RemotingConnection, Command], Command]


def measured(
    table: Mapping[int, PlainHandler], code_of: Callable[[TandemError], int], called: Called
) -> dict[int, Handler]:
    """The same handlers; `called` hears of each call."""
    return {code: _measured(RequestCode(code).name, handler, code_of, called) for code, handler in table.items()}


def _measured(name: str, handler: PlainHandler, code_of: Callable[[TandemError], int], called: Called) -> Handler:
    def answer(connection: RemotingConnection, request: Command) -> Answer:
        begun = time.perf_counter()
        code: int = ResponseCode.SYSTEM_ERROR
        try:
            answered = handler(connection, request)
            code = answered.code
            return answered
        except TandemError as error:
            code = code_of(error)
            raise
        finally:
            called(name, ResponseCode(code).name, time.perf_counter() - begun)

    return answer
