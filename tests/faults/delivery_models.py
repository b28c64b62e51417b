"""The state of deliveries against its models: `fact_world` (what is lost and repeated) and the ledger's.

    python -m tests.faults.delivery_models --seed 7 --steps 1000000

Stops at what goes wrong, with the smallest history; the same seed and number of steps come to it again.
"""

import argparse
import sys

from hypothesis import HealthCheck, settings
from hypothesis import seed as drawn_from
from hypothesis.stateful import run_state_machine_as_test

from tests.unit.delivery.fact_histories import MUTATIONS, steps_until_wrong
from tests.unit.delivery.fact_world import played
from tests.unit.delivery.test_ledger_model import LedgerMachine

STEPS = 1_000_000
_LEDGER_SHARE = 50
"""One step of so many is the ledger's: Hypothesis, and a replay after each, take as much longer."""
_EXAMPLE_STEPS = 40


def play(seed: int, steps: int) -> int:
    """Play so many steps at least; gives their number. Raises AssertionError for what goes wrong."""
    played_steps, history = steps_until_wrong(seed, steps)
    assert not history, f"{history}: {played(history)}"
    examples = max(steps // _LEDGER_SHARE // _EXAMPLE_STEPS, 1)
    limits = settings(
        max_examples=examples,
        stateful_step_count=_EXAMPLE_STEPS,
        deadline=None,
        suppress_health_check=list(HealthCheck),
        print_blob=True,
        database=None,
    )
    run_state_machine_as_test(drawn_from(seed)(LedgerMachine), settings=limits)
    return played_steps


def missed(seed: int, steps: int) -> list[str]:
    """The other orders of steps that so many steps do not find."""
    return [name for name, one in MUTATIONS.items() if not steps_until_wrong(seed, steps, **one.rules)[1]]


def soak(seed: int, steps: int) -> int:
    """Play millions of steps, each with the next seed; what was found, as exit code."""
    begun = seed
    if names := missed(seed, 10 * STEPS):
        sys.stdout.write(f"seed {seed}: the model does not notice {', '.join(names)}\n")
        return 1
    done = 0
    while done < steps:
        try:
            done += play(seed, min(STEPS, steps - done))
        except AssertionError as error:
            notes = "\n".join(getattr(error, "__notes__", ()))
            sys.stdout.write(f"seed {seed}: {error}\n{notes}\n")
            return 1
        sys.stdout.write(f"model seed {seed}: nothing lost or repeated; {done:,} steps from seed {begun}\n")
        sys.stdout.flush()
        seed += 1
    return 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--steps", type=int, default=STEPS)
    arguments = parser.parse_args()
    return soak(arguments.seed, arguments.steps)


if __name__ == "__main__":
    sys.exit(main())
