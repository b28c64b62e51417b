"""The README's commands as one script, in a container that has Python and nothing else: no make, compiler or Java."""

import subprocess
from pathlib import Path

import pytest

from tests.compose.engine import REPOSITORY, is_stand_in
from tests.integration.test_readme import ENDLESS, OF_A_STOPPED_STORE, STATUS, WORKER, lines

pytestmark = [pytest.mark.compose, pytest.mark.serial, pytest.mark.slow, pytest.mark.timeout(1_800)]

BEGINNING = r"""
received() { cat /sys/class/net/eth0/statistics/rx_bytes; }
begin=$(date +%s%N) before=$(received)
since() {
    echo "MEASURED $1: $((($(date +%s%N) - begin) / 1000000000)) s, $((($(received) - before) / 1000000)) MB received"
}

up() {
    down
    "$@" >/tmp/up.log 2>&1 &
    up=$!
    until grep -q "Ctrl-C stops everything" /tmp/up.log; do
        kill -0 "$up" || { cat /tmp/up.log; exit 1; }
        sleep 0.5
    done
}
down() {
    [ -z "$up" ] || { kill "$up"; wait "$up"; grep -q "Everything has stopped" /tmp/up.log; }
    up=
}
for_a_while() {
    timeout --signal INT 5 "$@" || [ $? = 124 ] || [ $? = 130 ]
}
until_told() {
    status=$1; shift
    for _ in $(seq 60); do "$@" | tee /tmp/told; grep -q "^$status" /tmp/told && return; sleep 1; done
    return 1
}

set -eu
up=
cd "$(mktemp -d)" && tar -x
tools/make_venv
tools/build_core
since "installed"
. .venv/bin/activate
printf 'two teas\nthree teas\n' >lines.txt
printf '%s' "$WORKER" >orders.py
set -x
"""
OF_SPARK = ("tandem data audit", "tandem data rebuild", "tandem data export")
"""What the README says needs more."""


def script() -> str:
    """A shell's, which stops at the first command that fails."""
    typed = [line for line in lines() if not line.startswith(OF_SPARK)]
    first = next(at for at, line in enumerate(typed) if line.startswith("tandem send "))
    said = [_typed(line) for line in typed]
    said.insert(first + 1, 'since "first message"')
    return "\n".join([BEGINNING, *said, "down"])


def _typed(line: str) -> str:
    verb, status = line.split()[1], STATUS.search(line)
    if verb == "up":
        return f"up {line}"
    if status:
        return f"until_told {status[1]} {line}"
    if any(words in line for words in ENDLESS):
        return f"for_a_while {line}"
    return f"down; {line}" if line.startswith(OF_A_STOPPED_STORE) else line


def test_the_readme_is_one_script_where_there_is_only_python(
    base: str, measured: dict[str, str], tmp_path: Path
) -> None:
    if is_stand_in():
        bare = subprocess.run(["docker", "run", "--rm", base, "which", "make", "cc", "java", "git"], check=False)
        assert bare.returncode, "there is more than Python"
    (tmp_path / "script").write_text(script())
    clone = subprocess.Popen(["git", "archive", "HEAD"], cwd=REPOSITORY, stdout=subprocess.PIPE)
    given = ("--interactive", f"--volume={tmp_path}:/given:ro", f"--env=WORKER={WORKER}", "--env=COLUMNS=200")
    done = subprocess.run(
        ["docker", "run", "--rm", *given, base, "bash", "/given/script"],
        stdin=clone.stdout, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False,
    )  # fmt: skip
    assert clone.stdout is not None
    clone.stdout.close()
    assert clone.wait() == 0
    assert done.returncode == 0, done.stdout[-5_000:]
    for line in done.stdout.splitlines():
        if line.startswith("MEASURED "):
            what, how_much = line.removeprefix("MEASURED ").split(": ", 1)
            measured[f"README with Python alone, {what}"] = how_much
