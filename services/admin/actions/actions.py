"""Who did what: the log of actions.

`actions.log` in adminDirectory has a JSON line when an action begins, and one more when it has ended. Both have the
same `id` and all that is known, and a checksum; in the first the outcome is empty. What cannot be written down is not
done. Calls that were turned away are in `refused.log`, so that nobody can fill the other file with them.

Lines of version 0.1 have no checksum; they are read as they are.
"""

import asyncio
import heapq
import json
import secrets
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any

import grpc

from tandemmq.admin.actions.line_file import LineFile
from tandemmq.admin.errors import BadAdminRequest, CannotRecord
from tandemmq.admin.v1 import admin_pb2
from tandemmq.common.access.principal import Principal
from tandemmq.common.documents.sealed import seal, unseal
from tandemmq.common.errors import TandemError
from tandemmq.common.log_output import get_log
from tandemmq.common.serving.grpc_status import status_of
from tandemmq.common.serving.guard import CallGuard

log = get_log(__name__)

Context = grpc.aio.ServicerContext[Any, Any]

_SERVICE = "tandemmq.admin.v1.Admin"
_DEFAULT_LIMIT, _MOST = 100, 1000

_TEXT_MAX = 2000
"""Characters of a problem that are kept: a caller can make it long."""

_REFUSALS_WAITING = 100
"""Refusals that wait to be written; more are dropped, and counted in the service's log."""

_AT_ONCE = 100
"""Actions that may have run at the same time: so far may the order of ends differ from that of starts."""


@dataclass(frozen=True, slots=True)
class ActionLine:
    """One line: what somebody does, or has done."""

    id: str
    at_ms: int
    user: str
    peer: str
    method: str
    request: dict[str, Any]
    outcome: str = ""
    """`OK`, or the gRPC code; empty: it has begun."""
    problem: str = ""

    def to_proto(self) -> admin_pb2.Action:
        """As ListActions tells it."""
        request = json.dumps(self.request, ensure_ascii=False)
        return admin_pb2.Action(
            at_ms=self.at_ms,
            user=self.user,
            peer=self.peer,
            method=self.method,
            request_json=request,
            outcome=self.outcome,
            problem=self.problem,
        )


class Actions:
    """Writes down every call that changes something, and gives the last ones back."""

    def __init__(self, directory: Path, guard: CallGuard) -> None:
        """`directory`: where actions.log is; `guard`: knows who calls, and tells whom it turns away."""
        self._done = LineFile(directory / "actions.log")
        self._refused = LineFile(directory / "refused.log")
        self._guard = guard
        guard.on_refused = self.refused
        self._refusals: set[asyncio.Task[None]] = set()
        self._unreadable: set[str] = set()
        """Lines that were told of."""
        self.counts: Counter[tuple[str, str]] = Counter()
        """By method and outcome, for the metrics."""

    def caller(self, context: Context) -> Principal | None:
        """Who makes a call that runs; None where everybody may do everything."""
        return self._guard.caller(context)

    def user(self, context: Context) -> str:
        """Name of the caller of a running call; empty where everybody may do everything."""
        principal = self.caller(context)
        return "" if principal is None else principal.name

    def who(self, context: Context) -> admin_pb2.WhoAmIResponse:
        """The caller, and what may be done."""
        principal = self._guard.caller(context)
        methods = self._guard.methods(principal, _SERVICE)
        return admin_pb2.WhoAmIResponse(
            user="" if principal is None else principal.name,
            roles=() if principal is None else principal.roles,
            methods=_all_methods() if methods is None else methods,
            open=methods is None,
        )

    # -- writing ----------------------------------------------------------------------------------------------------

    async def begin(self, context: Context, method: str, request: dict[str, Any]) -> ActionLine:
        """An action is about to be done. Raises CannotRecord: then it must not be done."""
        action = _new(self.user(context), context.peer() or "", method, request)
        try:
            await _write(self._done, action)
        except OSError as error:
            raise CannotRecord(
                f"{method} was not done: it cannot be written down in {self._done.path}: {error.strerror}",
                remedy="make room there, or give admin's user the right to write",
            ) from error
        return action

    async def end(self, action: ActionLine, outcome: str, problem: str = "") -> None:
        """It has been done, or has failed. A disk that refuses is told in the service's own log."""
        self.counts[action.method, outcome] += 1
        await _write_or_tell(self._done, replace(action, outcome=outcome, problem=problem[:_TEXT_MAX]))

    async def note(self, method: str, *, user: str, peer: str, outcome: str, problem: str = "") -> None:
        """Something that is over already, as a sign-in at the console. Never raises."""
        self.counts[method, outcome] += 1
        action = replace(_new(user, peer, method, {}), outcome=outcome, problem=problem[:_TEXT_MAX])
        await _write_or_tell(self._done if outcome == "OK" else self._refused, action)

    def refused(self, method: str, user: str, context: Context, error: TandemError) -> None:
        """A call that was turned away before it began: for the guard. Never raises."""
        name, outcome, problem = method.rpartition("/")[2], status_of(error).code, error.explain()
        self.counts[name, outcome] += 1
        if len(self._refusals) >= _REFUSALS_WAITING:
            log.warning("refusal not written down: too many at once", method=name, user=user)
            return
        note = self.note(name, user=user, peer=context.peer() or "", outcome=outcome, problem=problem)
        task = asyncio.ensure_future(note)
        self._refusals.add(task)
        task.add_done_callback(self._refusals.discard)

    # -- reading ----------------------------------------------------------------------------------------------------

    def list(self, limit: int) -> admin_pb2.ListActionsResponse:
        """The last ones, newest first. Raises BadAdminRequest."""
        if not 0 <= limit <= _MOST:
            raise BadAdminRequest(f"limit {limit}: 0 (for {_DEFAULT_LIMIT}) to {_MOST}")
        return admin_pb2.ListActionsResponse(actions=[one.to_proto() for one in self.last(limit or _DEFAULT_LIMIT)])

    def last(self, limit: int) -> Sequence[ActionLine]:
        """The last ones by their start, newest first."""
        both = heapq.merge(self._lines(self._done), self._lines(self._refused), key=lambda one: -one.at_ms)
        found: dict[str, ActionLine] = {}
        for action in both:
            found.setdefault(action.id, action)  # the end of an action comes first, reading backwards
            if len(found) > limit + _AT_ONCE:
                break
        return sorted(found.values(), key=lambda one: one.at_ms, reverse=True)[:limit]

    def _lines(self, file: LineFile) -> Iterator[ActionLine]:
        """Backwards. One that was cut by a kill or has rotted is left out, and told once."""
        for line in filter(None, file.backwards()):
            try:
                yield ActionLine(**unseal(line.encode(), _is_older))
            except (ValueError, TypeError) as error:
                if line not in self._unreadable:
                    self._unreadable.add(line)
                    log.warning("action not readable", path=str(file.path), problem=str(error), line=line[:80])


_NAMES = frozenset(field.name for field in fields(ActionLine))


def _is_older(line: dict[str, Any]) -> bool:
    """Whether a line without a checksum never had one: with a name that has rotted it has one more."""
    return line.keys() == _NAMES and type(line["at_ms"]) is int


async def _write(file: LineFile, action: ActionLine) -> None:
    await asyncio.to_thread(file.append, seal(asdict(action)).decode())


async def _write_or_tell(file: LineFile, action: ActionLine) -> None:
    try:
        await _write(file, action)
    except OSError as error:
        log.failure("action not written down", error, method=action.method, outcome=action.outcome)


def _new(user: str, peer: str, method: str, request: dict[str, Any]) -> ActionLine:
    return ActionLine(secrets.token_hex(8), time.time_ns() // 1_000_000, user, peer, method, request)


def _all_methods() -> "list[str]":
    return [method.name for method in admin_pb2.DESCRIPTOR.services_by_name["Admin"].methods]
