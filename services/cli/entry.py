"""What a terminal runs as `tandem`: the command, or what installs it where only the client is installed."""

import json
import sys


def main() -> None:
    """Run the command line of this process. Without the packages of the extra `server` it names them, exit code 2."""
    if sys.argv[1:] == ["--version"]:  # scripts ask for it: nothing is imported that it does not need
        show_version()
        return
    try:
        from tandemmq.cli.main import main as run
    except ModuleNotFoundError as error:
        package = (error.name or "").partition(".")[0]
        if not package or package == "tandemmq":
            raise
        print(_told(package, as_json="--json" in sys.argv), file=sys.stderr)
        sys.exit(2)
    run()


def show_version() -> None:
    """Print what is installed."""
    from importlib.metadata import version

    print(f"tandem {version('tandemmq')}")


def _told(package: str, *, as_json: bool) -> str:
    message = (
        f"the client of TandemMQ is installed, and not the command and the broker: the Python package {package} is "
        "missing; pip install 'tandemmq[server]' installs them"
    )
    return json.dumps({"error": {"message": message}}) if as_json else f"tandem: {message}"


if __name__ == "__main__":
    main()
