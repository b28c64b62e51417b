"""`python -m tandemmq.<service>`: the options that every service has, and an error as one line."""

import argparse
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from tandemmq.common.errors import TandemError
from tandemmq.common.processes.child_process import end_with_parent
from tandemmq.common.settings.settings_profiles import Profiles

Loaded = TypeVar("Loaded")


def run_command(
    name: str,
    description: str,
    profiles: Profiles,
    load: Callable[[Path | None, str | None], Loaded],
    run: Callable[[Loaded], None],
    arguments: list[str] | None,
) -> int:
    """Load the settings that the command line names, and run the service to its end; gives the exit code."""
    end_with_parent()
    parser = argparse.ArgumentParser(prog=f"python -m tandemmq.{name}", description=description)
    parser.add_argument("--config", type=Path, help="a broker.conf with RocketMQ's setting names")
    parser.add_argument("--profile", choices=profiles, help="defaults: server with a config file, else embedded")
    options = parser.parse_args(arguments)
    try:
        run(load(options.config, options.profile))
    except TandemError as error:
        print(f"tandemmq.{name}: {error.explain()}", file=sys.stderr)  # noqa: T201 - what a terminal is for
        return 1
    return 0
