"""Recovery of a log that lies wholly after the checkpoint: no consume queue and no index entry is there yet."""

import json
import shutil

from bench.context import Context
from bench.model import Case, Contestant, Sample
from bench.saved import keep, restore
from bench.store import NAME

_FULL, _QUICK = 1024, 256


def recovery(context: Context) -> None:
    """The log is written once; before each round what recovery made is taken away."""
    size = _QUICK if context.quick else _FULL
    if not context.wants("recovery.log"):
        return
    directory = context.fresh("recovery")
    root, saved = directory / "store", directory / "saved"
    context.say(f"  writing {size} MiB of log")
    context.worker("fill", str(root), str(size))
    keep(root, saved)

    def recover() -> Sample:
        restore(root, saved)
        sample: Sample = json.loads(context.worker("recover", str(root)))
        return sample

    context.run(
        [Case("recovery.log", f"Recovery of {size} MiB behind the checkpoint", "seconds", [Contestant(NAME, recover)])]
    )
    shutil.rmtree(directory, ignore_errors=True)
