"""Puts calls into the log of actions: `@recorded` on a method of the servicer, whether gRPC calls it or the console."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import aclosing
from functools import wraps
from inspect import isasyncgenfunction
from typing import Any, Protocol, TypeVar, cast

from google.protobuf.json_format import MessageToDict
from google.protobuf.message import Message

from tandemmq.admin.actions.actions import Actions, Context
from tandemmq.common.errors import TandemError
from tandemmq.common.serving.grpc_status import status_of

Method = TypeVar("Method", bound=Callable[..., Any])


class HasActions(Protocol):
    """A servicer whose calls can be recorded."""

    @property
    def actions(self) -> Actions:
        """Where they are written down."""


def recorded(method: Method) -> Method:
    """The same method, in the log of actions; not where the request is a dry run.

    Raises CannotRecord instead of doing what cannot be written down.
    """
    if isasyncgenfunction(method):
        return cast(Method, _recorded_stream(method))

    @wraps(method)
    async def answer(self: HasActions, request: Message, context: Context) -> Any:
        if getattr(request, "dry_run", False):
            return await method(self, request, context)
        action = await self.actions.begin(context, method.__name__, told(request))
        outcome, problem = "OK", ""
        try:
            return await method(self, request, context)
        except BaseException as error:
            outcome, problem = outcome_of(error)
            raise
        finally:
            await self.actions.end(action, outcome, problem)

    return cast(Method, answer)


def _recorded_stream(method: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(method)
    async def stream(self: HasActions, request: Message, context: Context) -> AsyncIterator[Any]:
        action = await self.actions.begin(context, method.__name__, told(request))
        outcome, problem = "CANCELLED", ""  # unless it comes to its end, or says why not
        try:
            async with aclosing(method(self, request, context)) as answers:
                async for answer in answers:
                    yield answer
            outcome = "OK"
        except GeneratorExit:
            raise
        except BaseException as error:
            outcome, problem = outcome_of(error)
            raise
        finally:
            await self.actions.end(action, outcome, problem)

    return stream


def outcome_of(error: BaseException) -> tuple[str, str]:
    """Code and words of what was raised."""
    if isinstance(error, TandemError):
        return status_of(error).code, error.explain()
    if isinstance(error, asyncio.CancelledError):
        return "CANCELLED", "the caller went away"
    return "INTERNAL", f"{type(error).__name__}: {error}"


def told(request: Message) -> dict[str, Any]:
    """A request as it is written down: no body but its size, of properties the names."""
    copy = type(request)()
    copy.CopyFrom(request)
    fields = request.DESCRIPTOR.fields_by_name
    for name in {"body", "properties"} & set(fields):
        copy.ClearField(name)
    document = MessageToDict(copy, preserving_proto_field_name=True)
    if "body" in fields:
        document["body_bytes"] = len(cast(Any, request).body)
    if "properties" in fields and (names := sorted(cast(Any, request).properties)):
        document["properties"] = names
    return document
