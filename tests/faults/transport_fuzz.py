"""Mutation fuzzer of the gRPC transport below sockets: damaged traffic in, the rules of transport_target.py out.

    python -m tests.faults.transport_fuzz --inputs 100000 [--seed 7] [--first 0] [--record]

Input number N of a seed is always the same when N is even; odd ones are made of recorded traffic (with --record), which
differs a little from run to run. Stops at the first fault, makes the input smaller while the same fault remains, and
prints both as hex with the arguments that run them again. On all cores: soak.py.
"""

import argparse
import gc
import json
import random
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import psutil

from tests.faults.transport_mutations import Mutator
from tests.faults.transport_target import Target, replay

SECONDS_PER_INPUT = 30.0
"""CPU time after which one input counts as a hang: many times what STEP of them take together, on a slow machine."""
GROWTH_LIMIT = 48 << 20
"""Bytes of memory that a process may gain after its first tenth of inputs."""
SMALLER_TRIES = 3000
STEP = 1000


class Hang(BaseException):
    """An input took too long. No Exception, so that nothing swallows it."""


def disarm() -> None:
    """No Hang from here on."""
    signal.setitimer(signal.ITIMER_VIRTUAL, 0)


@contextmanager
def no_hangs() -> Iterator[Callable[[], None]]:
    """Gives what must be called now and then; raises Hang in the main thread when it was not, in CPU time."""

    def hang(*_: Any) -> None:
        raise Hang

    def rearm() -> None:
        signal.setitimer(signal.ITIMER_VIRTUAL, SECONDS_PER_INPUT)

    before = signal.signal(signal.SIGVTALRM, hang)
    try:
        rearm()
        yield rearm
    finally:
        disarm()
        signal.signal(signal.SIGVTALRM, before)


def chance_of(seed: int, number: int) -> random.Random:
    """What decides the surroundings of an input."""
    return random.Random(seed << 65 | number << 1 | 1)


def fuzz(
    seed: int,
    first: int,
    inputs: int,
    recorded: list[list[bytes]],
    progress: Callable[[int], None] = lambda _done: None,
) -> dict[str, Any]:
    """Inputs `first` to `first + inputs`; a report, with `fault` if there is one."""
    mutator = Mutator(seed, recorded)
    process, memory = psutil.Process(), 0
    begun, cpu, bytes_fed = time.monotonic(), time.process_time(), 0
    chance = random.Random()
    with no_hangs() as rearm:
        for number in range(first, first + inputs):
            parts: list[bytes] = []
            try:
                parts = mutator.make(number)
                chance.seed(seed << 65 | number << 1 | 1)
                Target(chance).run(parts)
            except (Exception, Hang) as error:  # noqa: BLE001 - anything that escapes is a fault
                disarm()  # to make the input smaller takes its time
                return {"seed": seed, "inputs": number - first + 1, "fault": described(error, parts, seed, number)}
            bytes_fed += sum(map(len, parts))
            done = number - first + 1
            if done % STEP == 0:
                rearm()
                progress(done)
            if done == inputs // 10 or done == inputs:
                gc.collect()
                memory = process.memory_info().rss - memory
    spent = time.process_time() - cpu
    report: dict[str, Any] = {
        "seed": seed,
        "inputs": inputs,
        "bytes": bytes_fed,
        "seconds": round(time.monotonic() - begun, 1),
        "cpu_us_per_input": round(spent / inputs * 1e6, 1),
        "growth": memory if inputs >= 10 else 0,
    }
    if inputs >= 10 and memory > GROWTH_LIMIT:
        report["fault"] = {"error": f"memory grew by {memory} bytes"}
    return report


def described(error: BaseException, parts: list[bytes], seed: int, number: int) -> dict[str, Any]:
    """A fault for people: the input, a smaller one that does the same, and how to run it again."""
    found: dict[str, Any] = {
        "error": repr(error),
        "input": number,
        "replay": replaying(seed, number, parts),
    }
    if isinstance(error, Hang):
        return found
    if replay(parts, chance_of(seed, number)) is None:
        found["alone"] = "does not happen with an empty header cache"
        return found
    smallest = smaller(parts, repr_of(error), lambda tried: replay(tried, chance_of(seed, number)))
    found["smallest"] = replaying(seed, number, smallest)
    return found


def replaying(seed: int, number: int, parts: list[bytes]) -> str:
    """Arguments that run these parts again, with the same things happening between them."""
    return f"--seed {seed} --first {number} --replay " + ",".join(part.hex() for part in parts)


def repr_of(error: BaseException | None) -> str:
    """What makes two faults the same: kind and the words before any number."""
    return f"{type(error).__name__}: {str(error).partition(':')[0]}"


def smaller(parts: list[bytes], fault: str, run: Callable[[list[bytes]], BaseException | None]) -> list[bytes]:
    """The input with as much taken away as the fault allows; parts stay apart, as what happens between them counts."""
    tries = 0
    size = max(map(len, parts))
    while size and tries < SMALLER_TRIES:
        changed = False
        for which in range(len(parts)):
            at = 0
            while at < len(parts[which]) and tries < SMALLER_TRIES:
                tries += 1
                less = [*parts[:which], parts[which][:at] + parts[which][at + size :], *parts[which + 1 :]]
                if repr_of(run(less)) == fault:
                    parts, changed = less, True
                else:
                    at += size
        size = size if changed and size > 1 else size // 2
    return parts


def show_progress(done: int) -> None:
    sys.stderr.write(f"{done}\n")
    sys.stderr.flush()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1 << 32))
    parser.add_argument("--first", type=int, default=0, help="number of the first input")
    parser.add_argument("--inputs", type=int, default=100_000)
    parser.add_argument("--record", action="store_true", help="mutate the traffic of a real grpcio client as well")
    parser.add_argument("--progress", action="store_true", help="numbers of inputs done, on stderr")
    parser.add_argument("--replay", metavar="HEX,HEX", help="run this input only; --seed and --first as they were")
    options = parser.parse_args()
    if options.replay is not None:
        parts = [bytes.fromhex(part) for part in options.replay.split(",")]
        Target(chance_of(options.seed, options.first)).run(parts)
        return 0
    recorded = []
    if options.record:
        from tests.faults.transport_recording import record

        recorded = record()
    progress = show_progress if options.progress else lambda _done: None
    report = fuzz(options.seed, options.first, options.inputs, recorded, progress)
    sys.stdout.write(json.dumps(report, indent=1) + "\n")
    return 1 if "fault" in report else 0


if __name__ == "__main__":
    sys.exit(main())
