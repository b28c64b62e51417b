"""CoreMissing: work that only the compiled twins of this package do, where they are not built."""

from tandemmq.common.errors import Kind, TandemError


class CoreMissing(TandemError, ImportError):
    """The compiled core is not there. An ImportError too: who can do without the twin goes on in Python."""

    kind = Kind.NOT_POSSIBLE
    remedy = (
        "Audits, rebuilds, exports and Spark jobs need it: use a wheel for this Python and processor, or pip install "
        "the sources where there is a C compiler; in a clone, make venv"
    )
