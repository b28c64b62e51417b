"""What can go wrong, told in one line: what happened, and what to do. With --json also by which statuses.

::

    tandem: no store answers at 127.0.0.1:8081; `tandem up` starts one; or name its address with --address
    tandem: There is no topic orders. (Send to it first.)
    {"error": {"status": "NOT_FOUND", "rocketmq_status": "NO_MATCHED_LOGIC_QUEUE", "message": "There is no ..."}}

Exit codes: 1 something failed or was not found, 2 the command line or a setting is wrong, 130 interrupted.
"""

import json
import re
import sys
import tempfile
import traceback
from typing import Any, NamedTuple

from tandemmq.common.errors import Kind, TandemError
from tandemmq.common.files.os_errors import cure_of
from tandemmq.common.serving.grpc_status import STATUSES

FAILED = 1
USAGE = 2
INTERRUPTED = 130


_WRONG_USAGE = (Kind.MISCONFIGURED, Kind.INVALID)
"""Errors that are found out here, from options, settings and the files that they name."""


_OF_SPARK = ("jinja2", "matplotlib", "pandas", "py4j", "pyarrow", "pyspark")
"""Packages that come with the extra of that name; others that commands need come with `server`."""

_IN_WORDS = {
    "Input should be a valid integer, unable to parse string as an integer": "it must be a whole number",
    "Input should be a valid number, unable to parse string as a number": "it must be a number",
    "Input should be": "it must be",
    "Value error, ": "",
    "Got unexpected extra argument(s)": "too many words (a text with spaces is one word in quotes):",
}
_PARSER_WORDS = re.compile("|".join(map(re.escape, _IN_WORDS)))
"""What the parser of command lines says, which no person would."""


class CommandFailed(TandemError):
    """A command cannot do what was asked; the message is for people."""

    kind = Kind.UNNAMED


class WrongUsage(CommandFailed):
    """The command line itself is wrong, whatever there is and answers."""


class NotThere(CommandFailed):
    """What was asked for is not there."""

    kind = Kind.NOT_FOUND


class CallFailed(TandemError):
    """A call to the store failed; `failure` has the statuses it came with."""

    def __init__(self, failure: "Failure") -> None:
        super().__init__(failure.message)
        self.failure = failure


class Failure(NamedTuple):
    """A failure, ready to be printed. `status` and `rocketmq_status` are empty where there are none."""

    message: str
    status: str = ""
    rocketmq_status: str = ""

    def line(self) -> str:
        """For people."""
        return f"tandem: {' '.join(self.message.split())}"

    def document(self) -> str:
        """For programs: one JSON line."""
        error = {"status": self.status, "rocketmq_status": self.rocketmq_status, "message": self.message}
        return json.dumps({"error": {name: value for name, value in error.items() if value}}, ensure_ascii=False)


def report(failure: Failure, *, as_json: bool) -> None:
    """Write a failure to stderr."""
    print(failure.document() if as_json else failure.line(), file=sys.stderr)


def exit_code(error: TandemError) -> int:
    """Of the process that one of our own errors ends."""
    wrong = isinstance(error, WrongUsage) or error.kind in _WRONG_USAGE
    return USAGE if wrong and not isinstance(error, CallFailed) else FAILED


def from_tandem(error: TandemError) -> Failure:
    """The failure that one of our own errors is."""
    if isinstance(error, CallFailed):
        return error.failure
    if error.kind is Kind.UNNAMED:
        return Failure(error.explain())
    status = STATUSES[error.kind]
    return Failure(error.explain(), status.code, status.rocketmq.replace("UNKNOWN_ERROR", ""))


def is_usage(error: Exception) -> bool:
    """Whether it is what the parser of command lines raises, whose class no public module has."""
    return hasattr(error, "format_message") and hasattr(error, "exit_code")


def report_usage(error: Any, *, as_json: bool) -> int:
    """Say what is wrong with a command line, in one line; gives the exit code. Help, where nothing was typed at all."""
    context = getattr(error, "ctx", None)
    if type(error).__name__ == "NoArgsIsHelpError":
        error.show()
        return int(error.exit_code)
    message = _PARSER_WORDS.sub(lambda found: _IN_WORDS[found[0]], error.format_message()).strip().rstrip(".")
    see = f"; see `{context.command_path} -h`" if context is not None else ""
    report(Failure(f"{message[:1].lower()}{message[1:]}{see}"), as_json=as_json)
    return int(error.exit_code)


def unexpected(error: Exception) -> Failure:
    """An error that nobody foresaw: one line for the user, the traceback in a file for the report."""
    if isinstance(error, ModuleNotFoundError) and error.name and not error.name.startswith("tandemmq"):
        package = error.name.partition(".")[0]
        extra = "spark" if package in _OF_SPARK else "server"
        return Failure(
            f"the Python package {package} is not installed, and this command needs it (pip install "
            f"'tandemmq[{extra}]'; in a clone of the sources, make venv)"
        )
    if isinstance(error, OSError) and error.filename is not None:
        cure = cure_of(error)
        return Failure(f"{error.filename}: {error.strerror}" + (f" ({cure})" if cure else ""))
    with tempfile.NamedTemporaryFile("w", prefix="tandem-error-", suffix=".txt", delete=False) as file:
        traceback.print_exception(error, file=file)
    return Failure(f"{type(error).__name__}: {error} (a fault of tandem itself; please report it with {file.name})")
