"""Kill and power-cut stores for as long as you like, each round with a new seed.

    python -m tests.faults.soak --minutes 60 [--seed 7] [--only kills|powercuts]
    python -m tests.faults.soak --pair [--minutes 60] [--seed 7]        master and slave, six processes: pair_kills.py
    python -m tests.faults.soak --pauses [--minutes 60] [--seed 7]      their processes stand still: pair_pauses.py
    python -m tests.faults.soak --three [--minutes 60] [--seed 7]      three nodes, promotions meanwhile: three_nodes.py
    python -m tests.faults.soak --delivery [--minutes 60] [--seed 7]    consumers, kills, power cuts, promotions
    python -m tests.faults.soak --model [--steps 100000000] [--seed 7]    deliveries and their models
    python -m tests.faults.soak --timers 10000000     so many waiting messages, and a kill: timer_kill.py
    python -m tests.faults.soak --machine [--hours 2] [--examples 2000] [--seed 7]   a store and its model: machine.py
    python -m tests.faults.soak --derived [--minutes 60] [--seed 7]     flipped bits in queues and index
    python -m tests.faults.soak --missing [--minutes 60] [--seed 7]     files missing in every combination: missing.py
    python -m tests.faults.soak --transport [--inputs 10000000] [--seed 7]      the gRPC transport: transport_soak.py
    python -m tests.faults.soak --remoting [--inputs 10000000] [--seed 7]       strangers at the remoting ports
    python -m tests.faults.soak --damage [--cases 10000] [--seed 7]      a damaged byte in any file: byte_damage.py
    python -m tests.faults.soak --wire [--minutes 60] [--seed 7]        changed bytes between master and slave
    python -m tests.faults.soak --siege [--minutes 10]      a store beside greedy callers and floods: siege.py
    python -m tests.faults.soak --short [--minutes 60] [--seed 7]       short memory and descriptors; clock steps
    python -m tests.faults.soak --clients [--minutes 10]    official clients, 50 MB/s: interop/rocketmq5/flow.py
    python -m tests.faults.soak --core [--minutes 60] [--seed 7]        the compiled core against its Python twin
    python -m tests.faults.soak --asan [--rounds 1] [--seed 7]   the core under the address sanitizer: sanitized_core.py

Stops at the first broken promise, names the seed, and leaves the store where it says.
"""

import argparse
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.faults import (
    byte_damage,
    delivery_models,
    missing,
    sanitized_core,
    siege,
    timer_damage,
    timer_kill,
    transport_soak,
    wire_damage,
)
from tests.interop.rocketmq5 import flow

SLOWEST_GOOD_CALL_MS = 50
"""What 99 of 100 calls of a good client may take while others attack."""

SHORT = ("tests/faults/test_short_resources.py", "tests/faults/test_clock_steps.py")
CORE = tuple(f"tests/unit/fronts/test_compiled_{part}.py" for part in ("send", "frames", "messages"))
ROUND_LIVES = 300
PAIR_KILLS = 300
EXAMPLES = 2_000
STEPS = 100_000_000
CASES = 1_000
REMOTING_ROUND = 50_000
KINDS = ("kills", "powercuts")
DELIVERY_SCENES = ("store", "power", "pair")


def one_round(kind: str, seed: int, lives: int) -> dict[str, Any]:
    """One round in a process of its own; its report."""
    keep = Path(tempfile.gettempdir()) / f"tandem-{kind}-{seed}"
    command = [sys.executable, "-m", f"tests.faults.{kind}", "--seed", str(seed), "--lives", str(lives)]
    if kind == "powercuts":
        command += ["--keep", str(keep)]
    outcome = subprocess.run(command, capture_output=True, text=True, check=False)
    if not outcome.stdout:
        return {"problems": [], "broken": [outcome.stderr]}
    report: dict[str, Any] = json.loads(outcome.stdout)
    return report


def pair_soak(seed: int, minutes: float, *campaign: str) -> int:
    """Pairs whose processes are killed, or stand still, one pair after the other; what it found, as exit code."""
    deadline, totals = time.monotonic() + minutes * 60, {"pairs": 0, "kills": 0, "put_ok": 0}
    while time.monotonic() < deadline:
        keep = Path(tempfile.gettempdir()) / f"tandem-pair-{seed}"
        shutil.rmtree(keep, ignore_errors=True)
        command = [sys.executable, "-m", *campaign, "--seed", str(seed)]
        outcome = subprocess.run([*command, "--keep", str(keep)], capture_output=True, text=True, check=False)
        if outcome.returncode:
            sys.stdout.write(f"pair with seed {seed}, left in {keep}:\n{outcome.stdout}{outcome.stderr[-4000:]}\n")
            return 1
        shutil.rmtree(keep)
        report: dict[str, Any] = json.loads(outcome.stdout)
        totals["pairs"] += 1
        totals["kills"] += report["killed"]
        totals["put_ok"] += report["told"].get("PUT_OK", 0)
        sys.stdout.write(
            f"pair seed {seed} ({report['kind']}): heals in {report['heal_median_s']} s, worst "
            f"{report['heal_worst_s']} s; so far {totals}\n"
        )
        sys.stdout.flush()
        seed += 1
    return 0


def delivery_soak(seed: int, minutes: float, scenes: list[str], seconds: float) -> int:
    """Rounds of `delivery_campaign`, each scene in turn; what was found, as exit code."""
    deadline, totals = time.monotonic() + minutes * 60, Counter[str]()
    while time.monotonic() < deadline and scenes:
        for scene in list(scenes):
            keep = Path(tempfile.gettempdir()) / f"tandem-delivery-{scene}-{seed}"
            shutil.rmtree(keep, ignore_errors=True)
            command = [sys.executable, "-m", "tests.faults.delivery_campaign", "--scene", scene, "--seed", str(seed)]
            command += ["--seconds", str(seconds), "--keep", str(keep)]
            outcome = subprocess.run(command, capture_output=True, text=True, check=False)
            if outcome.returncode:
                sys.stdout.write(
                    f"{scene} with seed {seed}, left in {keep}:\n{outcome.stdout}{outcome.stderr[-4000:]}\n"
                )
                return 1
            shutil.rmtree(keep)
            report: dict[str, Any] = json.loads(outcome.stdout)
            if "skipped" in report:
                sys.stdout.write(f"{scene}: {report['skipped']}\n")
                scenes.remove(scene)
                continue
            totals.update({"rounds": 1, "killed": report["killed"], "received": report["received"]})
            totals.update({"PUT_OK": report["told"]["PUT_OK"]})
            sys.stdout.write(f"{scene} seed {seed} ({report['kind']}): all dealt with; so far {dict(totals)}\n")
            sys.stdout.flush()
        seed += 1
    return 0


def machine_soak(seed: int, minutes: float, examples: int) -> int:
    """Batches of examples of the state machine, each with the next seed; what was found, as exit code."""
    deadline, done = time.monotonic() + minutes * 60, 0
    while time.monotonic() < deadline:
        command = [sys.executable, "-m", "tests.faults.machine", "--seed", str(seed), "--examples", str(examples)]
        begun = time.monotonic()
        outcome = subprocess.run(command, capture_output=True, text=True, check=False)
        if outcome.returncode:
            sys.stdout.write(f"machine with seed {seed} and {examples} examples:\n{outcome.stderr[-8000:]}\n")
            return 1
        done += examples
        seconds = time.monotonic() - begun
        sys.stdout.write(f"machine seed {seed}: nothing lost in {seconds:.0f} s; so far {done} examples\n")
        sys.stdout.flush()
        seed += 1
    return 0


def tests_soak(seed: int, minutes: float, tests: Sequence[str]) -> int:
    """Tests again and again, long ones included, each time with the next seed; what was found, as exit code."""
    deadline, rounds = time.monotonic() + minutes * 60, 0
    while time.monotonic() < deadline:
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *tests]
        environment = os.environ | {"TANDEM_SEED": str(seed)}
        outcome = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
        if outcome.returncode:
            sys.stdout.write(f"TANDEM_SEED={seed}:\n{outcome.stdout[-8000:]}\n")
            return 1
        rounds += 1
        sys.stdout.write(f"TANDEM_SEED={seed}: {outcome.stdout.splitlines()[-1]}; rounds so far: {rounds}\n")
        sys.stdout.flush()
        seed += 1
    return 0


def remoting_soak(seed: int, inputs: int) -> int:
    """Rounds of `remoting_under_fire`, each at a fresh process of either kind; what was found, as exit code."""
    for first in range(0, inputs, 2 * REMOTING_ROUND):
        for at in ("store", "names"):
            command = [sys.executable, "-m", "tests.faults.remoting_under_fire", "--at", at, "--seed", str(seed)]
            command += ["--first", str(first), "--inputs", str(REMOTING_ROUND)]
            if subprocess.run(command, check=False).returncode:
                return 1
    return 0


def derived_soak(seed: int, minutes: float) -> int:
    """A thousand stores with damaged queues or index after the other; what was found, as exit code."""
    deadline = time.monotonic() + minutes * 60
    while time.monotonic() < deadline:
        command = [sys.executable, "-m", "tests.faults.derived_damage", "--seed", str(seed), "--cases", str(CASES)]
        outcome = subprocess.run(command, capture_output=True, text=True, check=False)
        sys.stdout.write(outcome.stdout or outcome.stderr[-8000:])
        sys.stdout.flush()
        if outcome.returncode:
            return 1
        seed += 1
    return 0


def store_soak(seed: int, minutes: float, kinds: list[str], lives: int) -> int:
    """Kills and power cuts of single stores until the time is over; what it found, as exit code."""
    deadline = time.monotonic() + minutes * 60
    totals = {"rounds": 0, "kills": 0, "cuts": 0, "acked": 0, "audits": 0}
    while time.monotonic() < deadline:
        for kind in list(kinds):
            report = one_round(kind, seed, lives)
            if "skipped" in report:
                sys.stdout.write(f"{kind}: {report['skipped']}\n")
                kinds.remove(kind)
                continue
            if report["problems"] or report["broken"]:
                sys.stdout.write(f"{kind} with seed {seed}:\n{json.dumps(report, indent=1)}\n")
                return 1
            totals["rounds"] += 1
            for name in ("kills", "cuts", "acked", "audits"):
                totals[name] += report[name]
            sys.stdout.write(f"{kind} seed {seed}: nothing lost; so far {totals}\n")
            sys.stdout.flush()
        if not kinds:
            return 0
        seed += 1
    return 0


def waiting_soak(arguments: argparse.Namespace) -> int:
    """What waits for its time in a store, or the models of deliveries; what was found, as exit code."""
    if arguments.model:
        return delivery_models.soak(arguments.seed, arguments.steps)
    with tempfile.TemporaryDirectory(prefix="tandem-timers-") as scratch:
        return timer_kill.soak(Path(scratch), arguments.timers)


def pair_campaign(arguments: argparse.Namespace) -> list[str]:
    """The module of a campaign for `pair_soak`, and its options."""
    if arguments.pair:
        return ["tests.faults.pair_kills", "--kills", str(arguments.kills)]
    return ["tests.faults.pair_pauses" if arguments.pauses else "tests.faults.three_nodes"]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--hours", type=float, default=0.0, help="instead of --minutes")
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1 << 32))
    parser.add_argument("--only", choices=KINDS)
    parser.add_argument("--lives", type=int, default=ROUND_LIVES, help="lives in a round")
    parser.add_argument("--pair", action="store_true", help="kills the processes of a master and its slave in turn")
    parser.add_argument("--pauses", action="store_true", help="lets them stand still for up to a minute")
    parser.add_argument("--three", action="store_true", help="cuts, pauses and kills three nodes, and promotes them")
    parser.add_argument("--kills", type=int, default=PAIR_KILLS, help="kills of one pair")
    parser.add_argument("--delivery", action="store_true", help="producers and consumers at stores that are killed")
    parser.add_argument("--scene", choices=DELIVERY_SCENES, help="only this one of --delivery")
    parser.add_argument("--seconds", type=float, default=60.0, help="of one round of --delivery")
    parser.add_argument("--model", action="store_true", help="the state of deliveries against its models, in memory")
    parser.add_argument("--steps", type=int, default=STEPS, help="of --model")
    parser.add_argument("--timers", type=int, default=0, help="kills a store in which so many wait; 400 bytes each")
    parser.add_argument("--machine", action="store_true", help="a store against a model of it, one process")
    parser.add_argument("--examples", type=int, default=EXAMPLES, help="examples that draw from one seed")
    parser.add_argument("--derived", action="store_true", help="flipped bits in consume queues and index")
    parser.add_argument("--missing", action="store_true", help="starts stores of which files are missing")
    parser.add_argument("--transport", action="store_true", help="damaged traffic for the gRPC transport, and no store")
    parser.add_argument("--inputs", type=int, default=transport_soak.INPUTS, help="how many")
    parser.add_argument("--remoting", action="store_true", help="strangers at the remoting ports of store and names")
    parser.add_argument("--damage", action="store_true", help="damaged bytes in files of every kind")
    parser.add_argument("--cases", type=int, default=byte_damage.CASES, help="how many")
    parser.add_argument("--wire", action="store_true", help="changes bytes between a master and its slave")
    parser.add_argument("--siege", action="store_true", help="greedy callers and floods beside a good client")
    parser.add_argument("--short", action="store_true", help="memory and descriptors that are short; clock steps")
    parser.add_argument(
        "--clients", action="store_true", help="official clients of RocketMQ 5 at 50 MB/s, each in turn"
    )
    parser.add_argument("--core", action="store_true", help="the compiled core against its Python twin")
    parser.add_argument("--asan", action="store_true", help="the core, built with the address sanitizer, under tests")
    parser.add_argument("--rounds", type=int, default=1, help="of --asan")
    arguments = parser.parse_args()
    if arguments.damage:
        found = byte_damage.soak(arguments.seed, arguments.cases)
        return timer_damage.soak(arguments.seed, arguments.cases // 5) or found
    if arguments.siege:
        return siege.campaign(list(siege.ATTACKS), arguments.minutes * 60 / len(siege.ATTACKS), SLOWEST_GOOD_CALL_MS)
    if arguments.transport:
        return transport_soak.soak(arguments.seed, arguments.inputs)
    if arguments.asan:
        return sanitized_core.soak(arguments.seed, arguments.rounds)
    if arguments.remoting:
        return remoting_soak(arguments.seed, arguments.inputs)
    if arguments.timers or arguments.model:
        return waiting_soak(arguments)
    minutes = arguments.hours * 60 or arguments.minutes
    if arguments.delivery:
        scenes = [arguments.scene] if arguments.scene else list(DELIVERY_SCENES)
        return delivery_soak(arguments.seed, minutes, scenes, arguments.seconds)
    if arguments.short or arguments.core:
        return tests_soak(arguments.seed, minutes, SHORT if arguments.short else CORE)
    if arguments.pair or arguments.pauses or arguments.three:
        return pair_soak(arguments.seed, minutes, *pair_campaign(arguments))
    if arguments.derived:
        return derived_soak(arguments.seed, minutes)
    if arguments.machine:
        return machine_soak(arguments.seed, minutes, arguments.examples)
    if arguments.missing or arguments.wire:
        damage = missing.soak if arguments.missing else wire_damage.soak
        return damage(arguments.seed, minutes)
    if arguments.clients:
        return flow.soak(minutes)
    return store_soak(arguments.seed, minutes, [arguments.only] if arguments.only else list(KINDS), arguments.lives)


if __name__ == "__main__":
    sys.exit(main())
