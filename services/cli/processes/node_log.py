"""The logs of several services as one: who said it in front of each line, in colours on a terminal."""

import json
import os
import sys
from contextlib import suppress
from typing import TYPE_CHECKING

from tandemmq.cli.talk.output import printable

if TYPE_CHECKING:
    from tandemmq.node.plan import ServicePlan

_WIDTH = len("a replicator")
_COLOURS = {"store": 32, "metasync": 36, "replicator": 35, "admin": 33, "names": 34}
_BRIGHTER = 60
"""What is added to the colour of the second node."""
_BOLD = 1


class NodeLog:
    """Writes log lines to stderr."""

    def __init__(self, *, as_json: bool) -> None:
        """`as_json`: a JSON object a line, with "node" and "service"."""
        self._as_json = as_json
        self._with_colours = (
            sys.stderr.isatty() and os.environ.get("TERM") != "dumb" and not os.environ.get("NO_COLOR") and not as_json
        )

    def line(self, plan: "ServicePlan", text: str) -> None:
        """A line of a service's log."""
        if self._as_json:
            self._write(json.dumps({"node": plan.node, "service": plan.service, **_fields(text)}, ensure_ascii=False))
            return
        colour = _COLOURS.get(plan.service, 0) + (_BRIGHTER if plan.node == "b" else 0)
        self._write(self._styled(f"{plan.name:<{_WIDTH}}", colour) + "  " + printable(_error(text)))

    def remark(self, text: str) -> None:
        """A line of our own; not for programs, which have the events."""
        if not self._as_json:
            self._write(self._styled(f"{'tandem up':<{_WIDTH}}  {printable(text)}", _BOLD))

    def _styled(self, text: str, code: int) -> str:
        return f"\x1b[{code}m{text}\x1b[0m" if self._with_colours and code else text

    def _write(self, line: str) -> None:
        with suppress(BrokenPipeError):  # who stopped reading the log may still want the services
            sys.stderr.write(line + "\n")
            sys.stderr.flush()


def _fields(text: str) -> dict[str, object]:
    """A line as a document: its own if it is one."""
    try:
        found = json.loads(text)
    except ValueError:
        found = None
    return found if isinstance(found, dict) else {"event": text}


def _error(text: str) -> str:
    """The last words of a command, which it wrote as JSON, for people; other lines as they are."""
    if not text.startswith('{"error"'):
        return text
    error = _fields(text).get("error")
    return f"ERROR   {error['message']}" if isinstance(error, dict) and "message" in error else text
