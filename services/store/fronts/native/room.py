"""Room for answers: nothing large is read for a caller before the server may hold it."""

from typing import Any

import grpc

from tandemmq.common.errors import Kind, TandemError
from tandemmq.common.grpc_transport import room_for


class AnswersNotRead(TandemError):
    """The server holds so much that callers have not read that it reads no more for this one."""

    kind = Kind.EXHAUSTED
    remedy = "Read the answers that are there, ask for fewer at a time, or try again."


async def room_to_answer(context: "grpc.aio.ServicerContext[Any, Any]", size: int) -> None:
    """Waits until an answer of so many bytes may be held. Raises AnswersNotRead."""
    if not await room_for(context, size):
        raise AnswersNotRead(f"There was no room for an answer of up to {size:,} bytes: callers do not read.")
