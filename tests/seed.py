"""The seed of this run: one number, drawn once, from which everything comes that a test draws at random.

``TANDEM_SEED`` in the environment replays a run. A number that was drawn is put there, so that processes which this one
starts (pytest's workers among them) have the same.
"""

import os
import random


def seed() -> int:
    """``TANDEM_SEED``, drawn where it is not set."""
    drawn = os.environ.get("TANDEM_SEED") or str(random.SystemRandom().randrange(1 << 32))
    os.environ["TANDEM_SEED"] = drawn
    return int(drawn)


SEED = seed()
"""Read when the module is imported. A test whose module has it under this name is marked ``seeded``."""
