"""The worker's side of a conversation: a question a line, an answer a line, both JSON."""

import json
import sys
from collections.abc import Callable, Mapping
from typing import Any


def serve(tasks: Mapping[str, Callable[..., object]]) -> None:
    """Do what lines on stdin ask, ``{"do": name, …}``, until there are no more."""
    for line in sys.stdin:
        question: dict[str, Any] = json.loads(line)
        try:
            answer = tasks[question.pop("do")](**question)
        except Exception as error:  # noqa: BLE001 - whatever it is, who asked is told
            answer = {"failed": f"{type(error).__name__}: {error}"[:600]}
        print(json.dumps(answer if answer is not None else {}), flush=True)
