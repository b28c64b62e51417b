"""Services of a node in one process: `python -m tandemmq.cli.processes.together store [OPTION]... + replicator ...`.

What `tandem up` starts; each part has the options of the command that runs the service alone. Events are JSON lines on
stdout, with the service in each; the lines of the log on stderr begin with the service and a tab. A node answers when
this has been imported, so typer is not: that is 50 ms of CPU.
"""

import argparse
import importlib
import json
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from tandemmq.cli.processes.serving import (
    admin_serves,
    metasync_serves,
    names_serves,
    replicator_serves,
    store_serves,
)
from tandemmq.cli.processes.start_settings import (
    read_admin_settings,
    read_metasync_settings,
    read_naming_settings,
    read_replicator_settings,
    read_settings,
)
from tandemmq.cli.talk.failures import FAILED, exit_code, from_tandem, report, unexpected
from tandemmq.common.errors import TandemError
from tandemmq.common.processes.child_process import end_with_parent

if TYPE_CHECKING:
    from tandemmq.common.processes.together import TogetherPart
    from tandemmq.common.serving.shutdown import StopRequest
    from tandemmq.common.settings.server_settings import ServerSettings

BETWEEN = "+"


class _Service(NamedTuple):
    module: str
    """Has `serve`."""
    read: Callable[[Path | None, Path | None, list[str] | None], "ServerSettings"]
    serving: Callable[..., dict[str, object]]


_SERVICES = {
    "store": _Service("tandemmq.store.__main__", read_settings, store_serves),
    "replicator": _Service("tandemmq.replicator.__main__", read_replicator_settings, replicator_serves),
    "metasync": _Service("tandemmq.metasync.__main__", read_metasync_settings, metasync_serves),
    "admin": _Service("tandemmq.admin.__main__", read_admin_settings, admin_serves),
    "names": _Service("tandemmq.naming.__main__", read_naming_settings, names_serves),
}


def main() -> None:
    """Run the services that the command line names; an error is a JSON line, as commands with `--json` write it."""
    end_with_parent()
    os.environ.setdefault("GRPC_VERBOSITY", "NONE")
    try:
        _run(sys.argv[1:])
    except TandemError as error:
        report(from_tandem(error), as_json=True)
        sys.exit(exit_code(error))
    except Exception as error:  # noqa: BLE001 - the last stop: the supervisor has nothing but our last words
        report(unexpected(error), as_json=True)
        sys.exit(FAILED)


def _parts(words: list[str]) -> Iterator[tuple[str, "ServerSettings"]]:
    """The services, each with its settings. Raises SettingsError."""
    parser = argparse.ArgumentParser(prog="python -m tandemmq.cli.processes.together", add_help=False)
    parser.add_argument("service", choices=_SERVICES)
    parser.add_argument("--config", type=Path)
    parser.add_argument("--set", action="append")
    while words:
        end = words.index(BETWEEN) if BETWEEN in words else len(words)
        options = parser.parse_args(words[:end])
        yield options.service, _SERVICES[options.service].read(options.config, None, options.set)
        words = words[end + 1 :]


def _run(words: list[str]) -> None:
    from tandemmq.common.log_output import configure_logging
    from tandemmq.common.processes.garbage import no_collections
    from tandemmq.common.processes.process import prepare_process
    from tandemmq.common.processes.together import name_speakers, run_together
    from tandemmq.common.serving.server import run

    with no_collections():
        parts = list(_parts(words))
        _, first = parts[0]
        prepare_process()
        configure_logging(first.log_level, first.log_format)
        name_speakers([name for name, _ in parts])
        services = [_part(name, settings) for name, settings in parts]
    run(run_together(services))


def _part(name: str, settings: "ServerSettings") -> "TogetherPart":
    """A service, imported before any of them starts: imports hold up the loop."""
    from tandemmq.common.processes.together import TogetherPart

    service = _SERVICES[name]
    life = importlib.import_module(service.module).serve

    def serve(answers: Callable[..., None], stop: "StopRequest") -> Any:
        return life(settings, answers, stop)

    def tell(*facts: Any) -> None:
        print(json.dumps({"service": name, **service.serving(settings, *facts)}, ensure_ascii=False), flush=True)

    return TogetherPart(name, serve, tell)


if __name__ == "__main__":
    main()
