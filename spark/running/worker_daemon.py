"""The process from which Spark forks its Python workers, with everything loaded that our tasks need.

Spark's own (`pyspark.daemon`) forks workers that import numpy, Arrow and the compiled kernels one by one, and that look
through all of it for garbage after every task. This one imports first and counts what is there as lasting, which makes
the first task half a second shorter and every task a few milliseconds. Named by spark.python.daemon.module; Spark
starts it with the module of the workers as its argument.
"""

import gc
import runpy
import sys

_TASKS = "pyspark.worker"
"""Of the modules that Spark asks for the one that runs tasks; others plan queries, and need little."""


def main() -> None:
    """Load, then be Spark's daemon until its end."""
    if sys.argv[1:2] == [_TASKS]:
        try:
            import pandas  # noqa: F401 - pyspark's worker looks for it
            import pyspark.worker  # noqa: F401

            from tandemmq.spark.running.warming import warm

            warm()
        except Exception as error:  # noqa: BLE001 - workers then load by themselves, and say what is missing
            sys.stderr.write(f"the workers' process could not load ahead: {error!r}\n")
        gc.collect()
        gc.freeze()
    runpy.run_module("pyspark.daemon", run_name="__main__")  # as Spark itself starts it


if __name__ == "__main__":
    main()
