"""The `tandem` command: its commands, and the one place where an error becomes a line and an exit code."""

import gc
import os
import sys
from pathlib import Path
from typing import Annotated

import typer

from tandemmq.cli.commands import RootGroup, calls_cluster
from tandemmq.cli.entry import show_version
from tandemmq.cli.talk.contexts import ADDRESSES, CONTEXT, SECRET_HOSTS, SERVER, choose, variables_of
from tandemmq.cli.talk.failures import (
    FAILED,
    exit_code,
    from_tandem,
    is_usage,
    report,
    report_usage,
    unexpected,
)
from tandemmq.cli.talk.options import Context, SecretFile, Server, TlsCa, TlsCertificate, TlsKey, User
from tandemmq.common.errors import TandemError
from tandemmq.common.processes.child_process import end_with_parent

app = typer.Typer(
    name="tandem",
    cls=RootGroup,
    help="TandemMQ: a durable message broker whose files are RocketMQ's.",
    epilog="Exit codes: 0 done, 1 failed or not found, 2 wrong command line or setting. Errors are one line on stderr; "
    "with --json that line is JSON. Start with: tandem demo",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
)


_SELDOM = 50_000
"""New objects between two collections of a call: what it imports are many, and none of them is garbage."""


def _show_version(wanted: bool) -> None:
    if wanted:
        show_version()
        raise typer.Exit


@app.callback()
def _root(
    call: typer.Context,
    _version: Annotated[
        bool, typer.Option("--version", help="Print the version and stop.", callback=_show_version, is_eager=True)
    ] = False,
    context: Context = None,
    server: Server = None,
    user: User = None,
    secret_file: SecretFile = None,
    tls_ca: TlsCa = None,
    tls_cert: TlsCertificate = None,
    tls_key: TlsKey = None,
) -> None:
    """TandemMQ: a durable message broker whose files are RocketMQ's."""
    given: dict[str, str | Path | None] = {
        SERVER: server,
        CONTEXT: context,
        "TANDEM_USER": user,
        "TANDEM_SECRET_FILE": secret_file,
        "TANDEM_TLS_CA": tls_ca,
        "TANDEM_TLS_CERT": tls_cert,
        "TANDEM_TLS_KEY": tls_key,
    }
    is_typed = {name: getattr(call.get_parameter_source(name), "name", "") == "COMMANDLINE" for name in call.params}
    for name, replaced in (("context", (SERVER, *ADDRESSES)), ("server", ADDRESSES), ("user", (SECRET_HOSTS,))):
        if is_typed[name]:  # what is typed wins over the environment
            for variable in replaced:
                os.environ.pop(variable, None)
    if is_typed["context"] and not is_typed["server"]:  # it is what the environment had
        given[SERVER] = None
    # Where every call looks (tandemmq.client.Identity), in this process and in those that it starts.
    os.environ.update({name: str(value) for name, value in given.items() if value is not None})
    if calls_cluster(call) and not call.resilient_parsing:
        gc.set_threshold(_SELDOM, *gc.get_threshold()[1:])
        _find_cluster()


def _find_cluster() -> None:
    """Where calls of this process go to, as far as context or server say it. Raises NoContext, UnreadableContexts."""
    chosen = choose(None, os.environ)
    if chosen is not None:
        os.environ.update(variables_of(chosen, os.environ))
    if server := os.environ.get(SERVER):
        for name in ADDRESSES:
            os.environ.setdefault(name, server)


def main() -> None:
    """Run the command line of this process; never shows a traceback."""
    end_with_parent()
    as_json = "--json" in sys.argv
    os.environ.setdefault("GRPC_VERBOSITY", "NONE")  # what went wrong is said here, not by gRPC's own log lines
    try:
        if "_TANDEM_COMPLETE" in os.environ:
            from tandemmq.cli.completion import answer_shells

            answer_shells()
        code = app(prog_name="tandem", standalone_mode=False)
        sys.exit(code if isinstance(code, int) else 0)  # of typer.Exit
    except typer.Abort:
        print("Aborted!", file=sys.stderr)
        sys.exit(FAILED)
    except TandemError as error:
        report(from_tandem(error), as_json=as_json)
        sys.exit(exit_code(error))
    except Exception as error:  # noqa: BLE001 - the last stop: nobody above could tell the user
        if is_usage(error):
            sys.exit(report_usage(error, as_json=as_json))
        report(unexpected(error), as_json=as_json)
    sys.exit(FAILED)


if __name__ == "__main__":
    main()
