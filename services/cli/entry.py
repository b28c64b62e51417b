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
        from tandemmq.common.server_packages import not_installed

        print(_told(not_installed(package), as_json="--json" in sys.argv), file=sys.stderr)
        sys.exit(2)
    run()


def show_version() -> None:
    """Print what is installed."""
    from importlib.metadata import version

    print(f"tandem {version('tandemmq')}")


def _told(message: str, *, as_json: bool) -> str:
    return json.dumps({"error": {"message": message}}) if as_json else f"tandem: {message}"


if __name__ == "__main__":
    main()
