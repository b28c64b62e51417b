"""The packages of the extra `server`. A module that runs by `python -m` imports this before all else of ours.

Where only the client is installed the run ends here, with one line that names what is missing and what installs it. A
program that imports such a module has a ModuleNotFoundError, as ever.
"""

import sys
from importlib.util import find_spec

_PACKAGES = ("hpack", "prometheus_client", "uvloop")
"""Those without which no service starts; the grpc packages beside them come with every import."""

WHAT_INSTALLS = "pip install 'tandemmq[server]' installs them"


def not_installed(package: str) -> str:
    """What a person is told, and does about it."""
    return (
        f"the client of TandemMQ is installed, and not the command and the broker: the Python package {package} is "
        f"missing; {WHAT_INSTALLS}"
    )


def _check() -> None:
    run = getattr(sys.modules["__main__"], "__spec__", None)  # that of a `python -m`
    if run is None or not run.name.startswith("tandemmq."):
        return
    missing = next((one for one in _PACKAGES if find_spec(one) is None), None)
    if missing is not None:
        print(f"{run.name.removesuffix('.__main__')}: {not_installed(missing)}", file=sys.stderr)  # noqa: T201
        sys.exit(2)


_check()
