"""Messages that a stream should have read and cannot: an error or a warning, as failOnDataLoss says."""

import warnings

from tandemmq.spark.errors import MissingLog


def lose(fail: bool, what: str, cause: Exception | None = None) -> None:
    """Raise MissingLog if ``fail``, else warn and go on. ``what``: a sentence that says which messages, and why."""
    if fail:
        advice = "Set failOnDataLoss to false to go on with what there is."
        # Spark shows the text of an error, not its remedy.
        raise MissingLog(f"{what} {advice}", remedy=advice) from cause
    warnings.warn(what, stacklevel=3)
