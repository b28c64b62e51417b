"""The `tandem` command: its commands, and the one place where an error becomes a line and an exit code."""

import os
import sys
from typing import Annotated

import typer

from tandemmq.cli.commands import RootGroup
from tandemmq.cli.talk.failures import FAILED, exit_code, from_tandem, report, unexpected
from tandemmq.cli.talk.options import SecretFile, TlsCa, TlsCertificate, TlsKey, User
from tandemmq.common.child_process import end_with_parent
from tandemmq.common.errors import TandemError

app = typer.Typer(
    name="tandem",
    cls=RootGroup,
    help="TandemMQ: a durable message broker whose files are RocketMQ's.",
    epilog="Exit codes: 0 done, 1 failed or not found, 2 wrong command line. Errors are one line on stderr; with "
    "--json that line is JSON. Start with: tandem demo",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
)


def _show_version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        print(f"tandem {version('tandemmq')}")
        raise typer.Exit


@app.callback()
def _root(
    _version: Annotated[
        bool, typer.Option("--version", help="Print the version and stop.", callback=_show_version, is_eager=True)
    ] = False,
    user: User = None,
    secret_file: SecretFile = None,
    tls_ca: TlsCa = None,
    tls_cert: TlsCertificate = None,
    tls_key: TlsKey = None,
) -> None:
    """TandemMQ: a durable message broker whose files are RocketMQ's."""
    given = {
        "TANDEM_USER": user,
        "TANDEM_SECRET_FILE": secret_file,
        "TANDEM_TLS_CA": tls_ca,
        "TANDEM_TLS_CERT": tls_cert,
        "TANDEM_TLS_KEY": tls_key,
    }
    # Where every call looks (tandemmq.client.Identity), in this process and in those that it starts.
    os.environ.update({name: str(value) for name, value in given.items() if value is not None})


def main() -> None:
    """Run the command line of this process; never shows a traceback."""
    end_with_parent()
    as_json = "--json" in sys.argv
    os.environ.setdefault("GRPC_VERBOSITY", "NONE")  # what went wrong is said here, not by gRPC's own log lines
    try:
        if "_TANDEM_COMPLETE" in os.environ:
            from tandemmq.cli.completion import answer_shells

            answer_shells()
        app(prog_name="tandem")
    except TandemError as error:
        report(from_tandem(error), as_json=as_json)
        sys.exit(exit_code(error))
    except Exception as error:  # noqa: BLE001 - the last stop: nobody above could tell the user
        report(unexpected(error), as_json=as_json)
    sys.exit(FAILED)


if __name__ == "__main__":
    main()
